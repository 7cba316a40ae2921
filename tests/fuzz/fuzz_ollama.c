/* The dialect's bodies: properties in fuzz_wire.h. The first byte is the size of pieces. */
#include "fuzz_wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_wire(&wire_ollama, data, size);
}

/* label.h - the block in front of a checkpoint's bytes that says what they are. Pure; fuzzed. Floor 3, private to store/.
 *
 *   0     "SBKSTATE"
 *   8     version of this block, 32 bits, little endian
 *   12    length of the JSON, the same
 *   16    JSON {"sandbook","image","python","session","cell","created_ms","bytes","kept"}, then zeros
 *   4096  the state: bytes of a box's own
 *   end   HMAC-SHA256 of state and block (in that order: the block is known last)
 *
 * What is in it is believed only once the seal is found right; until then it says why a file is not even worth reading. */
#ifndef LABEL_H
#define LABEL_H
#include "err.h"

enum { LABEL_BYTES = 4096, LABEL_VERSION = 1 };

struct label {
    char *sandbook, *image, *python; /* versions, and which image */
    char session[17];
    int cell;
    int64_t created_ms, bytes, kept;
};
void label_clear(struct label *l);
/* ERR_DATA: something of it is too long. */
must_check int label_write(unsigned char out[LABEL_BYTES], const struct label *l, struct err *e);
/* ERR_DATA: it is no label, or one of a version that is not known here. l is empty then. */
must_check int label_read(struct label *l, const unsigned char *data, size_t n, struct err *e);
#endif

/* raw.h - system calls without a C library, for the two freestanding programs (lock.so, init).
 *
 * They run inside the box's image, whose C library is older or newer than the one we were built with; so they have none.
 * A call returns the kernel's value: >= 0, or -errno. */
#ifndef RAW_H
#define RAW_H
#include <asm/unistd.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__)
static inline long raw6(long nr, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long ret = 0;
    __asm__ volatile("syscall"
                     : "=a"(ret)
                     : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return ret;
}
#elif defined(__aarch64__)
static inline long raw6(long nr, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}
#else
#error "no system call sequence for this architecture"
#endif

/* Pointers and numbers alike, as the kernel takes them. */
#define RAW_ARG(x)              ((long)(x))
#define raw0(nr)                raw6((nr), 0, 0, 0, 0, 0, 0)
#define raw1(nr, a)             raw6((nr), RAW_ARG(a), 0, 0, 0, 0, 0)
#define raw2(nr, a, b)          raw6((nr), RAW_ARG(a), RAW_ARG(b), 0, 0, 0, 0)
#define raw3(nr, a, b, c)       raw6((nr), RAW_ARG(a), RAW_ARG(b), RAW_ARG(c), 0, 0, 0)
#define raw4(nr, a, b, c, d)    raw6((nr), RAW_ARG(a), RAW_ARG(b), RAW_ARG(c), RAW_ARG(d), 0, 0)
#define raw5(nr, a, b, c, d, e) raw6((nr), RAW_ARG(a), RAW_ARG(b), RAW_ARG(c), RAW_ARG(d), RAW_ARG(e), 0)
#endif

/* seal.c - see seal.h. */
#include "seal.h"
#include <errno.h>
#include <fcntl.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include "digest.h"

struct seal {
    EVP_MAC *mac;
    EVP_MAC_CTX *ctx;
};

/* ---- the seal ---- */

static void must(int ok)
{
    if (!ok)
        abort();
}

struct seal *seal_new(const unsigned char key[SEAL_KEY])
{
    char digest[] = "SHA256";
    const OSSL_PARAM params[] = { OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                                  OSSL_PARAM_construct_end() };
    struct seal *s = xcalloc(1, sizeof *s);
    s->mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
    must(s->mac != NULL);
    s->ctx = EVP_MAC_CTX_new(s->mac);
    must(s->ctx && EVP_MAC_init(s->ctx, key, SEAL_KEY, params));
    return s;
}

void seal_add(struct seal *s, const void *data, size_t n)
{
    must(EVP_MAC_update(s->ctx, data, n));
}

void seal_end(struct seal *s, unsigned char out[SEAL_BYTES])
{
    size_t n = 0;
    must(EVP_MAC_final(s->ctx, out, &n, SEAL_BYTES) && n == SEAL_BYTES);
}

void seal_free(struct seal *s)
{
    if (!s)
        return;
    EVP_MAC_CTX_free(s->ctx);
    EVP_MAC_free(s->mac);
    free(s);
}

bool seal_equal(const unsigned char a[SEAL_BYTES], const unsigned char b[SEAL_BYTES])
{
    return digest_equal(a, b, SEAL_BYTES);
}

/* ---- its key ---- */

static int make_key(int dir_fd, const char *name, struct err *e)
{
    unsigned char key[SEAL_KEY];
    autofree char *temp = xasprintf("%s.new", name);
    digest_random(key, sizeof key);
    autoclose int fd = openat(dir_fd, temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    const bool written = fd >= 0 && write_all(fd, key, sizeof key) == 0 && fsync(fd) == 0 &&
                         renameat(dir_fd, temp, dir_fd, name) == 0 && fsync(dir_fd) == 0;
    explicit_bzero(key, sizeof key);
    return written ? 0 : err_sys(e, ERR_STORE, errno, "cannot write %s in data_dir", name);
}

static int check_key(int fd, const char *name, struct err *e)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return err_set(e, ERR_CONFIG, "data_dir/%s is no file", name);
    if (st.st_mode & 077)
        return err_set(e, ERR_CONFIG, "data_dir/%s can be read by others: chmod 600", name);
    if (st.st_size != SEAL_KEY)
        return err_set(e, ERR_CONFIG,
                       "data_dir/%s is not %d bytes long: without the right one no checkpoint can be read", name,
                       SEAL_KEY);
    return 0;
}

int seal_key(int dir_fd, const char *name, unsigned char key[SEAL_KEY], struct err *e)
{
    enum { FLAGS = O_RDONLY | O_NOFOLLOW | O_CLOEXEC };
    autoclose int fd = openat(dir_fd, name, FLAGS);
    if (fd < 0 && errno == ENOENT) {
        if (make_key(dir_fd, name, e) < 0)
            return -1;
        fd = openat(dir_fd, name, FLAGS);
    }
    if (fd < 0)
        return err_sys(e, ERR_STORE, errno, "cannot open %s in data_dir", name);
    if (check_key(fd, name, e) < 0)
        return -1;
    return pread(fd, key, SEAL_KEY, 0) == SEAL_KEY ? 0 : err_set(e, ERR_STORE, "cannot read %s in data_dir", name);
}

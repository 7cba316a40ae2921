/* native_cell.h - the trust boundary between a head's claim and a struct cell. Pure: no descriptors, no clock; fuzzed.
 *
 * Three accounts are put together: the keeper's verdict (what the kernel says; believed), the head's claim (written by a
 * process that runs a person's code; every type and size checked, every text scrubbed) and what we saw ourselves: the
 * bytes printed and the files that arrived. */
#ifndef NATIVE_CELL_H
#define NATIVE_CELL_H
#include "cell.h"
#include "native_output.h"

enum verdict_kind {
    VERDICT_OK,
    VERDICT_TIMEOUT,
    VERDICT_OOM,
    VERDICT_CRASH,
    VERDICT_LIMIT,
    VERDICT_CANCELLED,
    VERDICT_FAILED, /* the sandbox could not do it; the code did not run */
};

struct json;

struct verdict {
    enum verdict_kind kind;
    enum cell_state state;
    char *why;  /* in words, scrubbed; NULL: none given */
    int signal; /* crash only; 0: it exited */
    int64_t peak_bytes;
    double took_ms, start_ms;
    int cell; /* the one whose state was gone back to; -1: none was */
};

/* BOX_DONE's payload. ERR_SANDBOX: the keeper broke the protocol. */
must_check int verdict_parse(struct verdict *v, const char *data, size_t n, struct err *e);
void verdict_clear(struct verdict *v);

/* A file of the request that lies in the out folder now; `box_path` is what the claim calls it. */
struct delivered {
    char *box_path;
    struct artifact file; /* width and height 0: no picture that we would show */
    bool figure;          /* under the name of a captured figure */
    bool small;           /* the small one of a figure (PICTURE_SMALL): lies beside it, and is no result of its own */
};

struct account {
    int number;
    int64_t memory_bytes; /* the limit, for words */
    int64_t timeout_ms;
    const struct verdict *verdict;
    const char *claim; /* NULL: the head said nothing */
    size_t claim_n;
    const struct output *printed[2];
    struct delivered *files; /* moved into the cell */
    size_t file_n;
    char **gone; /* paths, checked; moved into the cell */
    size_t gone_n;
    char **notes; /* ours, moved into the cell */
    size_t note_n;
};

/* Not for VERDICT_FAILED. Takes files and notes out of *a; out is initialised here. */
void cell_from_account(struct cell *out, struct account *a);

/* The reply to going back: {"state","cell","notes"}; claim: the head's own account, may be anything. own_files: /mnt/data is another
 * folder now. The caller frees. */
struct json *reply_from_back(const struct verdict *v, const struct json *claim, bool own_files);

void delivered_clear(struct delivered *d);
#endif

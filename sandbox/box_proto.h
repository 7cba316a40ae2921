/* box_proto.h - the frames that daemon, keeper, zygote and head speak. The only header both binaries share.
 *
 * Three channels, all SOCK_SEQPACKET socketpairs, all with the same frame head:
 *
 *   daemon <-> keeper   the daemon is trusted by the keeper, the keeper by the daemon
 *   keeper <-> zygote   trusted both ways; the zygote never sees a byte of a person's
 *   keeper <-> head     what the head says is a claim: the keeper checks the sender's credentials and
 *                       the frame's head, relays the payload unread and adds its own verdict
 *
 * A payload longer than one frame is sent as several frames of the same type, session and request, all but
 * the last with BOX_MORE. JSON payloads are UTF-8 objects. A frame that breaks a rule ends the peer.
 *
 * One request, as the daemon sees it:
 *
 *   -> BOX_CELL | BOX_CALL | BOX_PUT ...      (request number chosen by the daemon, never 0)
 *   <- BOX_OUTPUT*                            what the code printed, as it comes
 *   <- BOX_GONE*                              what was there and is not any more
 *   <- BOX_FILE*                              a file that is new or changed, with a descriptor to read it
 *   <- BOX_KEPT_OUT*                          a file that can't be kept, and why
 *   <- BOX_CLAIM?                             the head's own account, relayed (absent when the head died)
 *   <- BOX_DONE                               the keeper's verdict; always last, always exactly one
 */
#ifndef BOX_PROTO_H
#define BOX_PROTO_H
#include <stdint.h>

#define BOX_MAGIC   0x314b4253u /* "SBK1" */
#define BOX_VERSION 1

enum {
    BOX_FRAME_MAX = 64 << 10,  /* head and payload of one frame; fits the default socket buffer */
    BOX_CODE_MAX = 1 << 20,    /* a cell's code; more is no program but data */
    BOX_REQUEST_MAX = 8 << 20, /* a request's whole payload: the code as JSON, with every byte escaped */
    BOX_CLAIM_MAX = 4 << 20,   /* a head's account of one request (rich results included) */
    BOX_FLOOD_MAX = 16 << 20,  /* printed bytes of one request past which it is killed */
    BOX_NAME_MAX = 255,        /* bytes of a file name (NAME_MAX) */
    BOX_PATH_MAX = 1024,       /* bytes of a path below /mnt/data */
    BOX_DEPTH_MAX = 16,        /* folders below /mnt/data that are looked into */
    BOX_ENTRIES_MAX = 10000,   /* entries below /mnt/data that are looked at: more than its inodes */
    BOX_SENT_MAX = 1000,       /* files that one cell may hand over */
    BOX_COPIES_MAX = 64,       /* copies that a session may keep */
};

enum box_frame_type {
    /* daemon -> keeper */
    BOX_OPEN =
        1,    /* JSON {"memory_bytes","disk_bytes","pids","cpu_pct","copies"}; session is new -> BOX_DONE (request 0).
                     copies: how many states of the past are kept, 0 (default) to BOX_COPIES_MAX. With a descriptor, of a folder
                     that nobody changes while the session lives: /mnt/data begins with its files */
    BOX_CELL, /* JSON {"code","number","timeout_ms","grace_ms","audit"}: also keeper -> head, unchanged. audit: off (default), note, refuse */
    BOX_CALL, /* JSON {"op", ..., "timeout_ms","grace_ms"}: also keeper -> head, unchanged; ops below */
    BOX_PUT,  /* JSON {"name"} and one descriptor: that file's bytes become /mnt/data/<name> */
    BOX_CANCEL, /* no payload: the running request is interrupted, then killed; it still ends in BOX_DONE */
    BOX_CLOSE,  /* no payload: everything of the session is killed and removed -> BOX_DONE (request 0) */
    BOX_CHECK,  /* no payload, session 0: try the escapes of `doctor` in a fresh session -> BOX_NOTE*, BOX_DONE */
    BOX_RESET,  /* no payload: a new interpreter; files stay, copies go -> BOX_DONE */
    BOX_BACK,   /* JSON {"cell"}: the state after that cell, or, without it, the one before the last cell; files stay.
                     Cell 0: a new interpreter, copies stay. With a descriptor, of a folder as for BOX_OPEN: /mnt/data begins
                     with its files, and no others. -> BOX_CLAIM (notes: what is gone), BOX_DONE */
    BOX_CHECKPOINT, /* JSON {"op":"checkpoint","variable_max","total_max","budget_ms","timeout_ms","grace_ms"} and one descriptor,
                     a pipe to write to: the variables as bytes go there, all of them before the claim -> BOX_CLAIM, BOX_DONE */
    BOX_RESTORE, /* JSON {"op":"restore","from","bytes","number","budget_ms","timeout_ms","grace_ms"} and one descriptor, a file to
                     read: a new interpreter gets the variables that lie there; files stay, copies go, and the session is after
                     cell `number` -> BOX_CLAIM, BOX_DONE */
    BOX_POOL =
        16, /* JSON {"boxes", what BOX_OPEN has, "zygote_forks","zygote_age_ms","spare_bytes"}, session 0: so many boxes
                     are kept ready for BOX_OPEN on the same terms (0, as at the start: none); an interpreter that heads are
                     forked from is replaced after so many forks and at that age (0: never); copies are given up while the
                     machine has less memory to spare (absent: a sixteenth, at most 1 GiB). No answer */
    BOX_PIN, /* JSON {"cell","pinned"}, also while another request runs: the state after that cell is kept although newer
                     ones come, or no longer. All but one of those that a session may keep can be pinned; want of memory
                     takes them, too, last -> BOX_DONE */
    BOX_DROP, /* JSON {"paths"} in one frame, also while another request runs: those files below /mnt/data go, and folders that
                     are empty then; what is not there is no failure. Not told as gone by a cell -> BOX_DONE */

    /* keeper -> daemon */
    BOX_READY =
        32, /* JSON {"tier":"T0","features":{...},"problems":[{"what","fix"}],"escape"}, session 0: may now open; or the machine lacks
                     something, or an escape that was tried at the start got through */
    BOX_OUTPUT, /* one byte stream number (1, 2), then bytes as printed; not necessarily UTF-8 */
    BOX_FILE,   /* JSON {"path","bytes"} and one descriptor, open for reading, of a regular file */
    BOX_CLAIM,  /* JSON: the head's account; also head -> keeper */
    BOX_DONE,   /* JSON {"verdict","state","why","signal","peak_bytes","took_us","start_us"}, and "cell" when a state of
                   the past was gone back to: the cell after which it was */
    BOX_NOTE,   /* JSON {"name","outcome":"pass|fail|skip","detail"}: one line of a check */
    BOX_GONE = 40, /* JSON {"path"}: a file that went, or a folder with all below it; before the request's BOX_FILEs */
    BOX_KEPT_OUT,  /* JSON {"path","why"}: the path is fit to be shown, not to be used */

    /* keeper -> zygote, zygote -> keeper, box init -> keeper: sandbox/box_zygote.h */
    BOX_FORK = 64,
    BOX_FORKED,
    BOX_EXIT,
    BOX_BUILT,
    BOX_FAILED,
    BOX_SWEEP,
    BOX_SWEPT,

    BOX_WATCH,

    /* keeper -> head: one descriptor, the channel of a copy to be. The head forks it and says BOX_COPIED */
    BOX_COPY = 80,
    /* keeper -> copy: JSON {"tell"} and three descriptors: control, stdout, stderr. A child of the copy becomes the head
     * and says BOX_HELLO on that control channel; with tell true its payload is a BOX_CLAIM whose notes say what did not
     * come along, else the notes come with the next cell's claim */
    BOX_WAKE,
    /* keeper -> head, no payload, no answer: it will wait in the pool, so it runs a cell of its own, forgets it, and has what it
     * writes to in memory of its own */
    BOX_REHEARSE,

    /* head -> keeper */
    BOX_HELLO = 96, /* JSON {"audit":{...}}: locked down, audited, ready for the first byte; of a woken one: a claim */
    BOX_COPIED,     /* JSON {"why"}: it has forked, or why it could not ("": it has); a copy says it, too, once woken */
    /* copy -> keeper, on its own channel */
    BOX_PARKED, /* JSON {"threads"}: it has given up what it can't keep and waits */
};

enum { BOX_MORE = 1 }; /* flag: the payload goes on in the next frame */

/* Native byte order: both ends are on one machine. */
struct box_frame {
    uint32_t magic;
    uint8_t version;
    uint8_t type; /* enum box_frame_type */
    uint16_t flags;
    uint32_t
        session; /* chosen by the daemon, never reused while the keeper lives; 0: the keeper itself; not UINT32_MAX */
    uint32_t request; /* chosen by the daemon; 0: not part of a request */
    uint32_t len;     /* payload bytes in this frame */
};

/* BOX_DONE.verdict: what the kernel says came of the request.
 *   ok         the head answered (its claim says whether the code raised)
 *   timeout    the time limit interrupted or killed it
 *   oom        the memory limit killed it
 *   crash      it died of a signal or ended by itself ("signal" says which; 0: it exited)
 *   limit      another limit killed it ("why" names it: output, processes, protocol)
 *   cancelled  BOX_CANCEL interrupted or killed it
 *   failed     the sandbox could not do what was asked ("why"); the code did not run
 * BOX_DONE.state: what is left of the variables.
 *   kept         all of them; also after an exception or an interrupt
 *   rolled_back  as they were after the cell that "cell" names: the one before this request, or an older one when that
 *                one's copy was gone ("why" says so). A copy was woken
 *   lost         a new interpreter
 *
 * BOX_CALL.op, and what its claim holds ("status" is "ok" or "error"; then "error" as in a cell):
 *   vars     -> {"vars":[{"name","type","detail"}]}
 *   intake   {"name"}: unpack /mnt/data/<name> if it is an archive, then profile it -> {"profiles":[profile...]}
 *   profile  {"path","as"}: profile one file -> {"profiles":[profile]}
 *   checkpoint, restore   as BOX_CHECKPOINT and BOX_RESTORE -> {"report","python"}: docs/checkpoints.md
 *
 * BOX_CLAIM of a cell:
 *   {"status":"ok|error","result":{"text/plain","text/html"}|null,
 *    "error":{"name","value","traceback","line"}|null,
 *    "figures":[{"path","width","height","title","summary"}],    paths below /mnt/data, already PNG
 *    "same_as":{path:path},                    files that the code saved of a figure -> that figure's path above
 *    "notes":[string],                                           e.g. "pip is not available; installed are ..."
 *    "audit":[{"kind","line","what"}]}         what the look at the code found before it ran; a hint (kernel/audit.py)
 * A cell that died has no account of its own; when a copy was woken, that one's notes come as {"status":"ok","notes"}.
 */
#endif

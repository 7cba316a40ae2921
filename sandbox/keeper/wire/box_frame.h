/* box_frame.h - frames of box_proto.h on SEQPACKET sockets: checked on the way in, queued on the way out.
 *
 * Nothing here waits: what a peer does not take is queued and goes out when its socket can be written. How much is queued
 * is the caller's to watch (box_link_queued): it stops reading what would add to it. */
#ifndef BOX_FRAME_H
#define BOX_FRAME_H
#include <sys/types.h>
#include "box_proto.h"
#include "str.h"

enum {
    BOX_PAYLOAD_MAX = BOX_FRAME_MAX - (int)sizeof(struct box_frame),
    BOX_FDS_MAX = 4, /* descriptors that one frame may bring */
};

/* Is this datagram one frame? 0 and *head filled, or -1. Pure: the fuzzer's door. */
must_check int box_frame_check(const void *data, size_t n, struct box_frame *head);

/* ---- in ---- */
struct box_msg {
    struct box_frame head;
    const uint8_t *payload; /* head.len bytes, inside raw */
    pid_t pid;              /* the sender as the kernel says, when the socket has SO_PASSCRED; else 0 */
    int fds[BOX_FDS_MAX];   /* ours to close; box_msg_clear() closes what was not taken (set to -1) */
    int fd_n;
    uint8_t raw[BOX_FRAME_MAX];
};

enum box_recv { BOX_RECV_FRAME, BOX_RECV_NOTHING, BOX_RECV_END, BOX_RECV_BAD };

/* One frame. With fds false, descriptors that a peer passes are closed by the kernel and never reach us. BAD: a datagram
 * that is no frame; msg->pid is still set. Where credentials come along, an empty packet is BAD, too, and not taken for
 * the peer's end: whoever holds a head's channel can send one. */
enum box_recv box_recv(int fd, struct box_msg *msg, bool fds);
void box_msg_clear(struct box_msg *msg);

/* A payload that comes in several frames. */
struct box_part {
    struct box_frame head; /* of its first frame; type 0: none begun */
    struct str body;       /* its ceiling is the payload's */
};
/* 1: complete, body is the payload; 0: more to come; -1: frames are mixed or the ceiling is passed. */
must_check int box_part_add(struct box_part *part, const struct box_frame *head, const void *payload);
void box_part_clear(struct box_part *part);

/* ---- out ---- */
struct box_packet;
struct box_link {
    int fd; /* -1: closed; what is sent is dropped */
    struct box_packet *first, *last;
    size_t queued; /* bytes */
};
#define BOX_LINK_INIT \
    {                 \
        .fd = -1      \
    }

/* Split into as many frames as it takes. Only session and request of head are used, type, and MORE is added. */
void box_send(struct box_link *link, uint8_t type, uint32_t session, uint32_t request, const void *payload, size_t n);
void box_send_text(struct box_link *link, uint8_t type, uint32_t session, uint32_t request, const struct str *text);
/* One frame with descriptors, which are duplicated: the caller keeps its own. */
void box_send_fds(struct box_link *link, const struct box_frame *head, const void *payload, const int *fds, int fd_n);
/* 0: all out; 1: the peer does not take more now; -1: it is gone. */
must_check int box_link_flush(struct box_link *link);
void box_link_close(struct box_link *link);
#endif

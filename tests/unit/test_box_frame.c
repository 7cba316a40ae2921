/* Frames: checked, split, put together, queued; over real SEQPACKET socketpairs. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include "box_frame.h"

static int pair[2];
static struct box_msg msg;

static int setup(void **state)
{
    const int on = 1;
    (void)state;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return -1;
    return setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
}

static int teardown(void **state)
{
    (void)state;
    (void)close(pair[0]);
    (void)close(pair[1]);
    return 0;
}

static struct box_frame good(uint32_t len)
{
    return (struct box_frame){
        .magic = BOX_MAGIC, .version = BOX_VERSION, .type = BOX_CELL, .session = 3, .request = 4, .len = len
    };
}

static void a_frame_must_be_whole_and_ours(void **state)
{
    (void)state;
    uint8_t raw[64] = { 0 };
    struct box_frame f = good(sizeof raw - sizeof f), out;
    memcpy(raw, &f, sizeof f);
    assert_int_equal(box_frame_check(raw, sizeof raw, &out), 0);
    assert_int_equal(out.session, 3);
    assert_int_equal(box_frame_check(raw, sizeof raw - 1, &out), -1);
    assert_int_equal(box_frame_check(raw, sizeof f - 1, &out), -1);
    assert_int_equal(box_frame_check(raw, 0, &out), -1);
    const struct box_frame wrong[] = {
        { .magic = BOX_MAGIC + 1, .version = BOX_VERSION, .type = 1, .len = f.len },
        { .magic = BOX_MAGIC, .version = BOX_VERSION + 1, .type = 1, .len = f.len },
        { .magic = BOX_MAGIC, .version = BOX_VERSION, .type = 0, .len = f.len },
        { .magic = BOX_MAGIC, .version = BOX_VERSION, .type = 1, .flags = 2, .len = f.len },
        { .magic = BOX_MAGIC, .version = BOX_VERSION, .type = 1, .len = UINT32_MAX },
        { .magic = BOX_MAGIC, .version = BOX_VERSION, .type = 1, .len = 0 },
    };
    for (size_t i = 0; i < countof(wrong); i++) {
        memcpy(raw, &wrong[i], sizeof f);
        assert_int_equal(box_frame_check(raw, sizeof raw, &out), -1);
    }
}

static void a_long_payload_is_split_and_put_together(void **state)
{
    (void)state;
    enum { N = 200000 };
    autofree char *text = xcalloc(1, N);
    for (size_t i = 0; i < N; i++)
        text[i] = (char)('a' + i % 26);
    struct box_link link = { .fd = dup(pair[0]) };
    struct box_part part = { .body = STR_INIT(N) };
    box_send(&link, BOX_CLAIM, 7, 8, text, N);
    int done = 0, frames = 0;
    while (done == 0) {
        (void)!box_link_flush(&link);
        assert_int_equal(box_recv(pair[1], &msg, false), BOX_RECV_FRAME);
        done = box_part_add(&part, &msg.head, msg.payload);
        frames++;
    }
    assert_int_equal(done, 1);
    assert_int_equal(frames, 4);
    assert_int_equal(part.body.len, N);
    assert_memory_equal(part.body.buf, text, N);
    assert_int_equal(part.head.request, 8);
    box_part_clear(&part);
    box_link_close(&link);
}

static void an_empty_payload_is_one_frame(void **state)
{
    (void)state;
    struct box_link link = { .fd = dup(pair[0]) };
    box_send(&link, BOX_CLOSE, 1, 0, NULL, 0);
    assert_int_equal(box_recv(pair[1], &msg, false), BOX_RECV_FRAME);
    assert_int_equal(msg.head.len, 0);
    assert_int_equal(msg.head.flags, 0);
    assert_int_equal(box_recv(pair[1], &msg, false), BOX_RECV_NOTHING);
    box_link_close(&link);
}

static void parts_of_different_requests_do_not_mix(void **state)
{
    (void)state;
    struct box_part part = { .body = STR_INIT(100) };
    struct box_frame f = good(2);
    f.flags = BOX_MORE;
    assert_int_equal(box_part_add(&part, &f, "ab"), 0);
    f.request++;
    assert_int_equal(box_part_add(&part, &f, "cd"), -1);
    box_part_clear(&part);
    f.len = 101;
    char big[101] = { 0 };
    assert_int_equal(box_part_add(&part, &f, big), -1);
    box_part_clear(&part);
}

static void the_kernel_names_the_sender(void **state)
{
    (void)state;
    struct box_link link = { .fd = dup(pair[0]) };
    box_send(&link, BOX_CLOSE, 1, 0, NULL, 0);
    assert_int_equal(box_recv(pair[1], &msg, false), BOX_RECV_FRAME);
    assert_int_equal(msg.pid, getpid());
    box_link_close(&link);
}

static int open_descriptors(void)
{
    int n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void unwanted_descriptors_never_arrive(void **state)
{
    (void)state;
    struct box_link link = { .fd = dup(pair[0]) };
    const struct box_frame f = good(0);
    const int fds[] = { 0, 1, 2 };
    int before = open_descriptors();
    box_send_fds(&link, &f, NULL, fds, 3);
    assert_int_equal(box_recv(pair[1], &msg, false), BOX_RECV_FRAME);
    assert_int_equal(msg.fd_n, 0);
    assert_int_equal(open_descriptors(), before);
    box_link_close(&link);
}

static void wanted_descriptors_arrive_and_are_closed(void **state)
{
    (void)state;
    struct box_link link = { .fd = dup(pair[0]) };
    const struct box_frame f = good(0);
    const int fds[] = { 0, 1 };
    int before = open_descriptors();
    box_send_fds(&link, &f, NULL, fds, 2);
    assert_int_equal(box_recv(pair[1], &msg, true), BOX_RECV_FRAME);
    assert_int_equal(msg.fd_n, 2);
    assert_true(fcntl(msg.fds[0], F_GETFD) & FD_CLOEXEC);
    box_msg_clear(&msg);
    assert_int_equal(open_descriptors(), before);
    box_link_close(&link);
}

static void a_slow_peer_makes_a_queue(void **state)
{
    (void)state;
    char text[4000] = { 0 };
    struct box_link link = { .fd = dup(pair[0]) };
    for (int i = 0; i < 500; i++)
        box_send(&link, BOX_OUTPUT, 1, (uint32_t)i + 1, text, sizeof text);
    assert_int_equal(box_link_flush(&link), 1);
    assert_true(link.queued > 0);
    uint32_t next = 1;
    for (enum box_recv got = BOX_RECV_FRAME; next <= 500;) {
        got = box_recv(pair[1], &msg, false);
        if (got == BOX_RECV_FRAME)
            assert_int_equal(msg.head.request, next++);
        else
            assert_true(box_link_flush(&link) >= 0);
    }
    assert_int_equal(link.queued, 0);
    box_link_close(&link);
}

static void an_ended_peer_is_told_and_junk_is_bad(void **state)
{
    (void)state;
    assert_int_equal(send(pair[0], "junk", 4, 0), 4);
    assert_int_equal(box_recv(pair[1], &msg, false), BOX_RECV_BAD);
    static char huge[BOX_FRAME_MAX + 100];
    struct box_frame f = good(BOX_PAYLOAD_MAX);
    memcpy(huge, &f, sizeof f);
    assert_int_equal(send(pair[0], huge, sizeof huge, 0), (ssize_t)sizeof huge);
    assert_int_equal(box_recv(pair[1], &msg, false), BOX_RECV_BAD);
    (void)close(pair[0]);
    assert_int_equal(box_recv(pair[1], &msg, false), BOX_RECV_END);
    struct box_link link = { .fd = dup(pair[1]) };
    box_send(&link, BOX_CLOSE, 1, 0, NULL, 0);
    assert_int_equal(box_link_flush(&link), -1);
    box_link_close(&link);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_frame_must_be_whole_and_ours),
        TEST(a_long_payload_is_split_and_put_together),
        TEST(an_empty_payload_is_one_frame),
        TEST(parts_of_different_requests_do_not_mix),
        TEST(the_kernel_names_the_sender),
        TEST(unwanted_descriptors_never_arrive),
        TEST(wanted_descriptors_arrive_and_are_closed),
        TEST(a_slow_peer_makes_a_queue),
        TEST(an_ended_peer_is_told_and_junk_is_bad),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* crypto_private.h - what the parts of the encryption share. A part is a pair of verbs: xxx_plan() queues the requests that its state asks
 * for, xxx_...ed() takes an answer. Everything that changes is in the store before the public call that changed it returns.
 *
 *   crypto.c          the face: opening, what a sync brings, state         crypto_req.c    requests, retries
 *   crypto_own.c      the own device: keys at the server, start-up checks   crypto_kept.c   rows of the store, secrets
 *   devices.c         who has which devices, and how far we trust them     crypto_event.c  events for the driver
 *   crypto_channel.c  Olm: one channel to each device                      crypto_todev.c  to-device messages in and out
 *   megolm_room.c, megolm_out.c, megolm_in.c  rooms, sending, receiving    xsign.c, backup.c, sas.c, ssss.c
 *
 * Rows of the store, (platform "matrix", kind, key) -> JSON: e2ee (meta, account, ...), e2ee_user, e2ee_stale, e2ee_olm, e2ee_hash, e2ee_room,
 * e2ee_member:<room>, e2ee_out, e2ee_share:<room>, e2ee_in, e2ee_index:<session>, e2ee_withheld, e2ee_todev, e2ee_secret, e2ee_unsaved. */
#ifndef MATRIX_CRYPTO_PRIVATE_H
#define MATRIX_CRYPTO_PRIVATE_H
#include "crypto.h"
#include "crypto_json.h"
#include "map.h"
#include "log.h"
#include "olm.h"

#define OLM_ALGORITHM    "m.olm.v1.curve25519-aes-sha2"
#define MEGOLM_ALGORITHM "m.megolm.v1.aes-sha2"

enum {
    SECOND_MS = 1000,
    MINUTE_MS = 60 * SECOND_MS,
    HOUR_MS = 60 * MINUTE_MS,
    ID_MAX = 255,                  /* bytes of user, room and event ids */
    QUERY_USERS_MAX = 250,         /* in one /keys/query */
    TODEV_DEVICES_MAX = 250,       /* in one /sendToDevice */
    DEVICES_MAX = 2000,            /* of one user */
    OLM_SESSIONS_MAX = 5,          /* with one device */
    ONE_TIME_KEYS = 50,            /* at the server; half of what libolm keeps */
    KEYS_WAIT_MS = 10 * SECOND_MS, /* a message waits this long for others' device lists and one-time keys */
    IN_CACHE_MAX = 1000,           /* Megolm sessions in memory */
};

/* ---- requests (crypto_req.c) ---- */
struct req;
typedef int req_fn(struct crypto *c, struct req *r, int status, const struct json *body, struct err *e);
struct req {
    int64_t id, not_before_ms;
    const char *what, *method;
    char *path, *body, *room; /* room: whose message waits for it, or NULL */
    struct json *data;        /* for done */
    req_fn *done;             /* final answers only; NULL: none cares */
    bool out, takes_401;
    int tries;
    struct req *next;
};
/* Queued at the end. path and body (NULL: GET) are taken. */
struct req *req_add(struct crypto *c, const char *what, const char *method, char *take_path, struct json *take_body,
                    req_fn *done);
bool req_pending(const struct crypto *c, const char *what);
void req_clear_all(struct crypto *c);
static inline bool req_ok(int status)
{
    return status >= 200 && status < 300;
}
/* 15 s * 2^n, at most 15 min. */
int64_t backoff_ms(int fails);

/* ---- rows (crypto_kept.c) ---- */
must_check int kept_put(struct crypto *c, const char *kind, const char *key, const struct json *v, struct err *e);
must_check int kept_get(struct crypto *c, const char *kind, const char *key, struct json **out,
                        struct err *e);                                                       /* NULL: none */
must_check int kept_drop(struct crypto *c, const char *kind, const char *key, struct err *e); /* key NULL: all */
/* Of e2ee_index:<session>: below which index nothing is taken any more, when there is no row for it. */
#define REPLAY_FLOOR "floor"
typedef int kept_fn(void *ud, const char *key, const struct json *v);
must_check int kept_each(struct crypto *c, const char *kind, const char *prefix, kept_fn *fn, void *ud, struct err *e);
/* Secrets, under a key made from the pickle key. *out NULL: none; caller wipes and frees. */
must_check int secret_get(struct crypto *c, const char *name, char **out, struct err *e);
must_check int secret_seed(struct crypto *c, const char *name, uint8_t seed[KEY_BYTES], bool *found, struct err *e);
must_check int secret_put_seed(struct crypto *c, const char *name, const uint8_t seed[KEY_BYTES], struct err *e);
must_check int secret_drop(struct crypto *c, const char *name, struct err *e);
void wipe_text(char **s); /* for AUTO */
#define autowipe AUTO(wipe_text)

/* ---- events (crypto_event.c): kept until the public call is over ---- */
void event_keys(struct crypto *c, const char *room, const char *session);
void event_room(struct crypto *c, const char *room);
void event_alarm(struct crypto *c, enum crypto_alarm what, const char *fmt, ...) printf_like(3, 4);
void event_sas(struct crypto *c, const struct crypto_sas *s);
void event_send(struct crypto *c, const char *room, const char *type, const struct json *content);
void event_flush(struct crypto *c);
void event_drop(struct crypto *c);
struct event;

/* ---- devices (devices.c) ---- */
struct device {
    char *id, *name;
    char curve25519[KEY_TEXT + 1], ed25519[KEY_TEXT + 1];
    bool cross_signed, blocked;
    bool no_olm_told;       /* m.no_olm went out since the last session */
    int wedges;             /* how often a channel to it had to be made anew: keys sent before may not have come */
    int64_t unwedged_ms;    /* when we last made a new channel because the old one was broken */
    int64_t claim_after_ms; /* memory only: the last claim failed */
    int claim_fails;
    bool wanted, unwedge; /* memory only: a channel is wanted; and a m.dummy through it */
};
struct user {
    char *id;
    bool tracked, stale, asking, again; /* asking, again: memory only */
    char *master, *self_signing,
        *verified; /* public keys, NULL: none; verified: the master key an operator vouched for */
    struct device *devices;
    size_t device_n, device_cap;
    int64_t ask_after_ms; /* memory only, as what follows */
    int fails;
    char unwedge_key[KEY_TEXT + 1]; /* a channel broke whose device we don't know yet */
    int strangers; /* channels that began from keys which no list names, within the hour since strangers_ms */
    int64_t strangers_ms;
};
bool id_ok(const char *id); /* a user, room, device or event id of a sane length */
/* Its keys are refused whatever the policy: the operator vouched for another identity than it has now. */
bool user_blocked(const struct user *u);
/* In the cache or from the store; never NULL in *out. An unknown one is untracked and has no devices. */
must_check int user_get(struct crypto *c, const char *id, struct user **out, struct err *e);
must_check int user_save(struct crypto *c, struct user *u, struct err *e);
void users_clear(struct crypto *c);
must_check int users_load_stale(struct crypto *c, struct err *e);
struct device *device_by_id(const struct user *u, const char *id);
struct device *device_by_key(const struct user *u, const char *curve25519);
enum crypto_trust device_trust(const struct crypto *c, const struct user *u, const struct device *d);
bool policy_allows(enum crypto_policy p, bool allow_plain, enum crypto_trust t);
must_check int devices_track(struct crypto *c, const char *user, struct err *e);
must_check int devices_stale(struct crypto *c, const char *user, struct err *e); /* only if tracked */
must_check int devices_sync(struct crypto *c, const struct json *lists, struct err *e);
must_check int devices_plan(struct crypto *c, struct err *e);
/* The part of a /keys/query answer that is about one user. */
must_check int devices_apply(struct crypto *c, const char *user, const struct json *answer, struct err *e);
/* A device object as its owner signed it: ids, keys, self-signature. */
bool device_object_ok(const struct json *o, const char *user, const char *id);

/* ---- Olm (crypto_channel.c) ---- */
struct channel {
    char curve25519[KEY_TEXT + 1];
    struct channel_session {
        struct ratchet_session *s;
        int64_t made_ms, heard_ms; /* heard: decrypted last; as made until then */
    } at[OLM_SESSIONS_MAX + 1];
    size_t n;
};
void channels_clear(struct crypto *c);
must_check int channel_ready(struct crypto *c, const char *curve25519, bool *ready, struct err *e);
/* A channel is wanted; the next plan claims a key. */
void channel_want(struct crypto *c, struct device *d, bool unwedge);
/* content of an m.room.encrypted to-device message, the session kept first. *out NULL: no session. */
must_check int channel_encrypt(struct crypto *c, const struct user *u, const struct device *d, const char *type,
                               const struct json *content, struct json **out, struct err *e);
must_check int channel_plan(struct crypto *c, struct err *e);
/* A channel from that key is broken: a new one, unless that was done within the hour. */
must_check int channel_unwedge(struct crypto *c, struct user *u, const char *curve25519, struct err *e);
/* An m.room.encrypted to-device event. */
must_check int channel_receive(struct crypto *c, const struct json *event, struct err *e);
/* What came through it. Borrowed. */
struct olm_message {
    const char *sender, *sender_key, *ed25519, *device, *type; /* device NULL: not known (yet) */
    const struct json *content;
    enum crypto_trust trust;
};

/* ---- to-device messages (crypto_todev.c) ---- */
/* messages: {user: {device: content}}, taken; kept until the server has it. room: whose message waits, or NULL. */
must_check int todev_send(struct crypto *c, const char *type, const char *room, struct json *take_messages,
                          struct err *e);
must_check int todev_load(struct crypto *c, struct err *e);
must_check int todev_receive(struct crypto *c, const struct json *event, struct err *e);
must_check int todev_olm(struct crypto *c, const struct olm_message *m, struct err *e);

/* ---- own device (crypto_own.c) ---- */
struct own {
    bool uploaded; /* the server has our device keys */
    bool fallback_wanted;
    bool fresh;      /* the account was made by this run */
    int server_keys; /* one-time keys there; -1: not known */
    int64_t counted_ms, fallback_ms, forget_ms, generation, upload_after_ms;
    int desyncs, bad_prekeys;
    int64_t bad_prekeys_ms;
    enum { BOOT_GENERATION, BOOT_KEYS, BOOT_UPLOAD, BOOT_DONE } boot;
};
must_check int own_load(struct crypto *c, struct err *e);
must_check int own_save(struct crypto *c, struct err *e); /* account and counters */
must_check int own_plan(struct crypto *c, struct err *e);
must_check int own_sync(struct crypto *c, const struct json *response, struct err *e);
/* Signed by the device, and by the identity if we have it; caller frees. */
struct json *own_device_keys(struct crypto *c);
void own_sign(struct crypto *c, struct json *obj); /* by the device */
void own_refuse(struct crypto *c, const char *fmt, ...) printf_like(2, 3);

/* ---- rooms (megolm_*.c) ---- */
struct share {
    char *at; /* "user device" */
    char curve25519[KEY_TEXT + 1];
    uint32_t index;
    int wedges;
    char *code; /* withheld with; NULL: it has the key */
};
struct room {
    char *id;
    enum crypto_room state;
    int64_t rotate_ms, rotate_n;
    bool members_known, shared_history;
    struct map members;      /* user -> itself */
    struct ratchet_out *out; /* NULL: none */
    int64_t out_made_ms, out_n;
    bool out_shared_history;
    struct map shares;
    /* memory only */
    int sending;           /* to-device requests on their way */
    bool waiting;          /* somebody waits for room_ready() */
    int64_t wait_since_ms; /* 0: not waiting for keys of others */
};
must_check int room_get(struct crypto *c, const char *id, struct room **out, struct err *e);
must_check int room_save_out(struct crypto *c, struct room *r, struct err *e);
void rooms_clear(struct crypto *c);
void room_wake(struct crypto *c, const char *room); /* NULL: all that wait */
must_check int mega_out_drop(struct crypto *c, struct room *r, const char *why, struct err *e);
bool room_member(const struct room *r, const char *user);
must_check int room_members_stale(struct crypto *c, const char *id, struct err *e);

enum in_source { IN_DIRECT, IN_BACKUP, IN_FORWARDED, IN_OWN };
struct in_key {
    char *at;                            /* "room session" */
    char *sender, *sender_key, *ed25519; /* user; keys of the device it came from */
    enum in_source source;
    bool shared_history;
    struct ratchet_in *s;
};
/* s is taken. Kept, merged with what is there, waiting events told. */
struct in_offer {
    const char *room, *sender, *sender_key, *ed25519;
    enum in_source source;
    bool shared_history;
    struct ratchet_in *take_s;
};
must_check int mega_in_add(struct crypto *c, const struct in_offer *o, struct err *e);
must_check int mega_in_get(struct crypto *c, const char *room, const char *session, struct in_key **out, struct err *e);
must_check int mega_in_room_key(struct crypto *c, const struct olm_message *m, struct err *e);
must_check int mega_in_withheld(struct crypto *c, const char *sender, const struct json *content, struct err *e);
void mega_in_clear(struct crypto *c);
must_check int key_request(struct crypto *c, const char *sender, const struct json *content, struct err *e);

/* ---- identity and backup ---- */
struct xsign {
    enum { XSIGN_IDLE, XSIGN_BUSY, XSIGN_DONE, XSIGN_OFF } state;
    bool device_signed, asked, have_ssk, reset;
    uint8_t ssk[KEY_BYTES], ssss[KEY_BYTES];
    bool have_ssss;
    char *ssss_id;
    int next; /* step of making one */
};
must_check int xsign_plan(struct crypto *c, struct err *e);
must_check int xsign_load(struct crypto *c, struct err *e);
/* Our own keys as the server has them now. before: the master key until now, or NULL. */
must_check int xsign_own_changed(struct crypto *c, const char *before, struct err *e);
struct backup {
    enum { BACKUP_IDLE, BACKUP_BUSY, BACKUP_ON, BACKUP_OFF } state;
    char *version, *public_key;
    int64_t saved, look_after_ms;
    bool have_secret, waiting;
    uint8_t secret[KEY_BYTES];
    struct map wishes; /* keys to look for in the backup */
};
must_check int backup_plan(struct crypto *c, struct err *e);
int64_t backup_wake_ms(const struct crypto *c);
must_check int backup_load(struct crypto *c, struct err *e);
void backup_clear(struct crypto *c);
/* The next start of the backup makes a new version where ours did not sign the one that is there. */
must_check int backup_anew(struct crypto *c, struct err *e);
must_check int backup_want(struct crypto *c, const char *room, const char *session, struct err *e);
must_check int backup_note(struct crypto *c, const char *room, const char *session,
                           struct err *e); /* a new key to be saved */

/* ---- verification (sas.c) ---- */
struct sas;
/* A user's device list came: requests of devices that it names now go on. */
must_check int sas_devices_came(struct crypto *c, const char *user, struct err *e);
must_check int sas_todev(struct crypto *c, const char *sender, const char *type, const struct json *content,
                         struct err *e);
must_check int sas_tick(struct crypto *c, struct err *e);
int64_t sas_wake_ms(const struct crypto *c);
void sas_clear(struct crypto *c);

struct crypto {
    struct crypto_config cfg; /* its strings are ours */
    struct crypto_events ev;
    char *user, *device, *recovery_words, *password;
    uint8_t pickle_key[KEY_BYTES];
    struct ratchet_env env;
    struct store *store;
    enum crypto_state state;
    char refusal[240];
    struct ratchet_account *account;
    struct own own;
    struct req *reqs;
    int64_t next_req, next_todev;
    struct map users, channels, rooms, in;
    int64_t stale_due_ms, claim_due_ms; /* when it is worth to look for stale users, for wanted channels */
    struct xsign xsign;
    struct backup backup;
    struct sas *sas;
    struct parked *parked; /* requests for verification whose device is not known yet */
    struct event *events, **events_end;
    int64_t alarms, prune_after_ms, answers_ms;
    int answers;
};
int64_t now_ms(const struct crypto *c);
void random_bytes(const struct crypto *c, void *out, size_t n);
bool is_me(const struct crypto *c, const char *user);
/* Begins and ends a public call: one batch, then plans and events. */
must_check int crypto_enter(struct crypto *c, struct store_batch *b, struct err *e);
must_check int crypto_leave(struct crypto *c, struct store_batch *b, struct err *e);
#endif

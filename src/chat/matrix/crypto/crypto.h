/* crypto.h - Matrix end-to-end encryption as a state machine without I/O: requests come out, answers go in. Floor 3.
 *
 * Whoever drives it (the Matrix adapter, or a test) does four things:
 *   1. hands in what /sync brought: crypto_sync(), crypto_room_*(), crypto_decrypt(), all in the store batch that also keeps the
 *      sync position, so that a key and the position that lies behind it are durable together;
 *   2. sends what crypto_next_request() hands out, and calls crypto_answered() for each, also when there was no answer;
 *   3. calls crypto_tick() at crypto_wake_ms();
 *   4. asks crypto_encrypt() before it sends into an encrypted room; when that says wait, again at event room_ready().
 *
 * Nothing here blocks, opens a socket or reads a clock of its own. Everything durable goes through the store in the transaction of
 * its cause: a call opens a batch, which nests in the caller's. When a batch that held one of these calls could not be
 * committed, memory is ahead of the disk: call crypto_reload() before anything else.
 *
 * Start: crypto_open(), then requests and answers until crypto_state() leaves CRYPTO_STARTING. Only CRYPTO_RUNNING may sync;
 * CRYPTO_REFUSED says why in words for the operator (the store is another device's, an old copy, ...), and nothing is ever
 * encrypted or decrypted then.
 *
 * Every byte of a peer or of the server is hostile: lengths, types, keys and signatures are checked before libolm sees them. What
 * is refused is logged (never its content) and changes nothing. An error (-1) is the store's, or a wrong call. Calls
 * must not be made from inside an event, but for crypto_next_request(). See docs/encryption.md. */
#ifndef MATRIX_CRYPTO_H
#define MATRIX_CRYPTO_H
#include "json.h"
#include "store.h"

struct crypto;

/* ---- trust ---- */
enum crypto_trust {
    CRYPTO_TRUST_UNKNOWN, /* no device list names this device: a key from a backup, a device that is gone, or a forgery */
    CRYPTO_TRUST_UNSIGNED, /* a device that its owner's identity did not sign */
    CRYPTO_TRUST_PLAIN,    /* a device of someone without any identity: old clients and most bots */
    CRYPTO_TRUST_SIGNED,   /* signed by its owner (cross-signing) */
    CRYPTO_TRUST_VERIFIED, /* and the operator verified that owner, or it is ourselves */
};

/* Who gets our keys, whose messages count. */
enum crypto_policy {
    CRYPTO_ALL,
    CRYPTO_CROSS_SIGNED, /* the default: SIGNED and better; PLAIN as long as allow_plain */
    CRYPTO_VERIFIED,
};

/* ---- events: what the driver may want to know; any may be NULL ---- */
enum crypto_alarm {
    CRYPTO_ALARM_IDENTITY, /* somebody's identity changed, maybe our own; text names the user */
    CRYPTO_ALARM_DESYNC,   /* the server holds keys that we don't know, or peers use such: an old copy of the store? */
    CRYPTO_ALARM_UNSIGNED, /* our device is not signed, and what the operator can do about it */
    CRYPTO_ALARM_BACKUP,   /* key backup does not work, and why */
    CRYPTO_ALARM_REFUSED,  /* now CRYPTO_REFUSED */
};
struct crypto_sas {                         /* a verification somebody asked for; borrowed */
    const char *txn, *user, *device, *room; /* room NULL: by to-device messages */
    const char *emoji;                      /* seven, with their names; "" until both keys are there */
    const char *decimal;                    /* three numbers; "" until then */
    const char *state;                      /* asked, started, keys, confirmed, done, cancelled */
    const char *code;                       /* of a cancellation, else "" */
};
struct crypto_events {
    /* Events that named this session may be decrypted now. */
    void (*keys_came)(void *ud, const char *room, const char *session);
    /* crypto_encrypt() for that room may give another answer than "wait". */
    void (*room_ready)(void *ud, const char *room);
    void (*alarm)(void *ud, enum crypto_alarm what, const char *text);
    /* State of a verification changed. In state "keys" the operator compares, then crypto_sas_answer(). */
    void (*sas)(void *ud, const struct crypto_sas *s);
    /* To be sent to the room, encrypted if the room is, in this order; content is borrowed. (Verification inside rooms.) */
    void (*room_send)(void *ud, const char *room, const char *type, const struct json *content);
};

enum crypto_sas_policy { CRYPTO_SAS_OFF, CRYPTO_SAS_OPERATOR, CRYPTO_SAS_AUTO };
struct crypto_config {
    struct store *store;
    const char *user, *device; /* our own full ids, e.g. "@bot:example.org" and "QWERTY" */
    const uint8_t *pickle_key; /* 32 bytes, never a constant: secret_file_key() */
    enum crypto_policy recipients, senders;
    bool allow_plain; /* CRYPTO_CROSS_SIGNED includes people without an identity */
    enum crypto_sas_policy sas;
    bool cross_sign;          /* make an identity when the account has none */
    bool backup;              /* keep room keys in the server's backup (needs the identity) */
    const char *recovery_key; /* of an identity made elsewhere, as people write it; or a passphrase; NULL or "": none */
    const char *password;     /* of the account, if the server wants it to take an identity; may be NULL */
    bool accept_rollback;     /* go on although the store is an old copy; see docs/encryption.md for what that costs */
    const struct crypto_events *events;
    void *ud; /* for the events */
    /* For tests; NULL: the machine's. The clock is Unix time. */
    int64_t (*now_ms)(void *hook);
    void (*random)(void *hook, void *out, size_t n);
    void *hook;
};

/* Everything in cfg is copied, but store, events and hooks, which must stay. A store that belongs to another user or device, or that
 * the pickle key does not open, is ERR_CONFIG. Makes the account at first use. */
must_check int crypto_open(struct crypto **out, const struct crypto_config *cfg, struct err *e);
void crypto_close(struct crypto *c); /* wipes; NULL is fine */
/* Read the store again, because a batch was lost. Requests that were handed out are forgotten: their answers are ignored. What was checked at
 * start is not checked again: who was RUNNING is. */
must_check int crypto_reload(struct crypto *c, struct err *e);

enum crypto_state { CRYPTO_STARTING, CRYPTO_RUNNING, CRYPTO_REFUSED };
enum crypto_state crypto_state(const struct crypto *c);
const char *crypto_refusal(const struct crypto *c); /* "" unless CRYPTO_REFUSED */
/* For `sandbook matrix status`: object with state, user, device, fingerprint (ed25519), identity {public, source, device_signed}, backup
 * {version, kept, waiting}, one_time_keys, sessions {olm, in, out}, waiting requests, devices tracked, alarms. No secrets. */
must_check int crypto_status(struct crypto *c, struct json **out, struct err *e);

/* ---- requests ---- */
struct crypto_request {
    int64_t id;
    const char *method; /* GET, PUT, POST */
    const char *path;   /* from "/_matrix/" on, escaped, with its query */
    const char *body;   /* JSON object text; NULL with GET */
};
/* The next one to be sent now; false: none. Each is handed out once, and again after it failed in a way that may pass. May be sent side by
 * side. Borrowed until the next call. */
bool crypto_next_request(struct crypto *c, struct crypto_request *out);
/* status: of HTTP; 0 when there was no answer (cut off, timeout). body: its JSON, NULL when it had none. Unknown ids are ignored.
 * retry_ms: what the server asked us to wait, or 0. */
must_check int crypto_answered(struct crypto *c, int64_t id, int status, const struct json *body, int64_t retry_ms,
                               struct err *e);
/* Unix time in ms of the next thing to do by time alone; INT64_MAX: nothing. */
int64_t crypto_wake_ms(const struct crypto *c);
must_check int crypto_tick(struct crypto *c, struct err *e);

/* ---- sync ---- */
/* One response of /sync (the whole object); reads to_device, device_lists, device_one_time_keys_count,
 * device_unused_fallback_key_types. Call it before the rooms of the same response are decrypted. */
must_check int crypto_sync(struct crypto *c, const struct json *response, struct err *e);
/* The sync position was lost: every device list may be out of date, and every list of members. */
must_check int crypto_sync_lost(struct crypto *c, struct err *e);

/* ---- rooms ---- */
/* m.room.encryption was seen, with this content. Remembered for ever: a later content can change the rotation, never switch it off. */
must_check int crypto_room_encrypted(struct crypto *c, const char *room, const struct json *content, struct err *e);
enum crypto_room { CRYPTO_ROOM_UNKNOWN, CRYPTO_ROOM_ENCRYPTED, CRYPTO_ROOM_UNSUPPORTED /* algorithm: never send */ };
must_check int crypto_room_state(struct crypto *c, const char *room, enum crypto_room *out, struct err *e);
/* All that get keys: joined members, and invited ones unless history visibility is "joined". Replaces what was known. */
must_check int crypto_room_members(struct crypto *c, const char *room, const char *const *users, size_t n,
                                   struct err *e);
/* One came (gets_keys) or went. Also to be called for each who went in the state of a limited timeline. */
must_check int crypto_room_member(struct crypto *c, const char *room, const char *user, bool gets_keys, struct err *e);
/* A stretch of its past was left out, and with it who came and went: CRYPTO_NEED_MEMBERS before the next message. */
must_check int crypto_room_gap(struct crypto *c, const char *room, struct err *e);
/* m.room.history_visibility, as its value. */
must_check int crypto_room_history(struct crypto *c, const char *room, const char *visibility, struct err *e);
/* We left, were kicked or the room was replaced. */
must_check int crypto_room_left(struct crypto *c, const char *room, struct err *e);
/* Next message with a new key, because an operator says so. */
must_check int crypto_room_rotate(struct crypto *c, const char *room, struct err *e);

/* ---- messages ---- */
enum crypto_ready {
    CRYPTO_READY, /* *out is the content of an m.room.encrypted event: keep it with the outbox row, never encrypt twice */
    CRYPTO_WAIT,         /* keys are on their way: again at room_ready() */
    CRYPTO_NEED_MEMBERS, /* crypto_room_members() first */
};
/* content's m.relates_to is lifted out into the clear part. ERR_REFUSED: the room is not known as encrypted, its algorithm is unknown, or
 * we are CRYPTO_REFUSED. Reactions, redactions, receipts and state are not to be encrypted: do not ask. */
must_check int crypto_encrypt(struct crypto *c, const char *room, const char *type, const struct json *content,
                              enum crypto_ready *ready, struct json **out, struct err *e);

/* Why a message can't be read ("unable to decrypt"). */
enum crypto_utd {
    CRYPTO_CLEAR,       /* it can */
    CRYPTO_NO_KEY,      /* retry at keys_came() */
    CRYPTO_WITHHELD,    /* its sender refuses us the key; code says why. Retry at keys_came() all the same */
    CRYPTO_TOO_EARLY,   /* our key begins behind this message; only a backup could help: retry at keys_came() */
    CRYPTO_REPLAYED,    /* the same ciphertext or index under another event: drop */
    CRYPTO_FORGED,      /* sender or room is not what the key belongs to: drop */
    CRYPTO_BROKEN,      /* malformed, or its MAC or signature is wrong: drop */
    CRYPTO_UNSUPPORTED, /* another algorithm: drop */
};
const char *crypto_utd_word(enum crypto_utd u);
struct crypto_message {
    enum crypto_utd utd;
    bool retry;           /* keys may still come */
    char *type;           /* of the clear event */
    struct json *content; /* with the m.relates_to of the clear part */
    char *session;        /* id of its key, "" when the event names none */
    char *device;         /* sender's device id, "" when unknown */
    char *code;           /* CRYPTO_WITHHELD: e.g. "m.unverified"; else "" */
    enum crypto_trust trust;
    bool accepted; /* by the senders policy */
};
void crypto_message_clear(struct crypto_message *m);
/* event: an m.room.encrypted event as the server gave it; room: where it was found. */
must_check int crypto_decrypt(struct crypto *c, const char *room, const struct json *event, struct crypto_message *out,
                              struct err *e);

/* Keys of rooms whose id begins so, and that opened nothing since before_ms: what is remembered of their messages becomes one row, and none
 * of them can be read again. Costs one look at each such key. */
must_check int crypto_prune(struct crypto *c, const char *rooms, int64_t before_ms, struct err *e);
/* With the device's keys goes what is remembered of their messages. Before those: it is found by them. */
must_check int crypto_forget_replays(struct store *store, struct err *e);

/* ---- verification ---- */
/* A decrypted or plain room event whose type is m.key.verification.*, or an m.room.message with msgtype m.key.verification.request.
 * ts: origin_server_ts. Events of our own are to be handed in as well (they are told apart). */
struct crypto_room_event {
    const char *room, *id, *sender, *type;
    const struct json *content;
    int64_t ts_ms;
};
must_check int crypto_room_verification(struct crypto *c, const struct crypto_room_event *ev, struct err *e);
/* The operator compared: they match, or not. ERR_DATA: there is no such verification, or it isn't at that point. */
must_check int crypto_sas_answer(struct crypto *c, const char *txn, bool match, struct err *e);
typedef void crypto_sas_fn(void *ud, const struct crypto_sas *s);
void crypto_sas_each(struct crypto *c, crypto_sas_fn *fn, void *ud);

/* The operator knows this user's identity to be right (on), or not. ERR_DATA: no identity is known. */
must_check int crypto_verify_user(struct crypto *c, const char *user, bool on, struct err *e);
/* No keys for this device, whatever the policy. ERR_DATA: there is no such device. */
must_check int crypto_block_device(struct crypto *c, const char *user, const char *device, bool on, struct err *e);

/* ---- identity (cross-signing), secret storage ---- */
/* The recovery key of the identity that was made here, as people write it, until crypto_recovery_taken(); *out NULL: there is none (any
 * more). The caller wipes and frees it. */
must_check int crypto_recovery_key(struct crypto *c, char **out, struct err *e);
must_check int crypto_recovery_taken(struct crypto *c, struct err *e); /* the operator has it: forget it here */
/* Throw away the account's identity and make a new one (the server may want cfg.password). What people verified is void. */
must_check int crypto_reset_identity(struct crypto *c, struct err *e);
#endif

#include "sas_math.h"

static const char *const emoji[64] = {
    "🐶 Dog",          "🐱 Cat",
    "🦁 Lion",      "🐎 Horse",
    "🦄 Unicorn",   "🐷 Pig",
    "🐘 Elephant",     "🐰 Rabbit",
    "🐼 Panda",        "🐓 Rooster",
    "🐧 Penguin",      "🐢 Turtle",
    "🐟 Fish",         "🐙 Octopus",
    "🦋 Butterfly", "🌷 Flower",
    "🌳 Tree",         "🌵 Cactus",
    "🍄 Mushroom",     "🌏 Globe",
    "🌙 Moon",         "☁️ Cloud",
    "🔥 Fire",         "🍌 Banana",
    "🍎 Apple",        "🍓 Strawberry",
    "🌽 Corn",         "🍕 Pizza",
    "🎂 Cake",         "❤️ Heart",
    "😀 Smiley",       "🤖 Robot",
    "🎩 Hat",          "👓 Glasses",
    "🔧 Spanner",      "🎅 Santa",
    "👍 Thumbs Up",    "☂️ Umbrella",
    "⌛ Hourglass",    "⏰ Clock",
    "🎁 Gift",         "💡 Light Bulb",
    "📕 Book",         "✏️ Pencil",
    "📎 Paperclip",    "✂️ Scissors",
    "🔒 Lock",         "🔑 Key",
    "🔨 Hammer",       "☎️ Telephone",
    "🏁 Flag",         "🚂 Train",
    "🚲 Bicycle",      "✈️ Aeroplane",
    "🚀 Rocket",       "🏆 Trophy",
    "⚽ Ball",         "🎸 Guitar",
    "🎺 Trumpet",      "🔔 Bell",
    "⚓ Anchor",       "🎧 Headphones",
    "📁 Folder",       "📌 Pin",
};

void sas_derive(const uint8_t shared[KEY_BYTES], const struct sas_side *starter, const struct sas_side *accepter,
                const char *txn, struct sas_bytes *out)
{
    autofree char *info = xasprintf("MATRIX_KEY_VERIFICATION_SAS|%s|%s|%s|%s|%s|%s|%s", starter->user, starter->device,
                                    starter->key, accepter->user, accepter->device, accepter->key, txn);
    const struct digest_hkdf h = { .key = shared, .key_n = KEY_BYTES, .info = info, .info_n = strlen(info) };
    digest_hkdf(&h, out->at, sizeof(out->at));
}

static uint64_t bits(const struct sas_bytes *b)
{
    uint64_t v = 0;
    for (size_t i = 0; i < sizeof(b->at); i++)
        v = v << 8 | b->at[i];
    return v;
}

void sas_emoji_indexes(const struct sas_bytes *b, int out[7])
{
    for (unsigned i = 0; i < 7; i++)
        out[i] = (int)(bits(b) >> (42 - 6 * i) & 63);
}

char *sas_emoji(const struct sas_bytes *b)
{
    int at[7];
    struct str out = STR_INIT(512);
    sas_emoji_indexes(b, at);
    for (size_t i = 0; i < countof(at); i++)
        str_printf(&out, "%s%s", i ? ", " : "", emoji[at[i]]);
    return str_take(&out);
}

char *sas_decimal(const struct sas_bytes *b)
{
    const uint64_t v = bits(b) >> 8; /* five bytes, 39 of their bits */
    return xasprintf("%u %u %u", (unsigned)(v >> 27 & 8191) + 1000, (unsigned)(v >> 14 & 8191) + 1000,
                     (unsigned)(v >> 1 & 8191) + 1000);
}

/* As old libraries did it: the text is written over the bytes that are still to be read. */
static void overwrite64(char buf[KEY_TEXT + 1])
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *from = (const uint8_t *)buf;
    char *to = buf;
    for (; from < (const uint8_t *)buf + 30; from += 3, to += 4) {
        const uint32_t v = (uint32_t)from[0] << 16 | (uint32_t)from[1] << 8 | from[2];
        for (unsigned i = 0; i < 4; i++)
            to[3 - i] = digits[v >> (6 * i) & 63];
    }
    const uint32_t v = ((uint32_t)from[0] << 8 | from[1]) << 2;
    for (unsigned i = 0; i < 3; i++)
        to[2 - i] = digits[v >> (6 * i) & 63];
}

char *sas_mac(const struct sas_mac *m, const char *key_id, const char *text)
{
    autofree char *info = xasprintf("MATRIX_KEY_VERIFICATION_MAC%s%s%s%s%s%s", m->sender_user, m->sender_device,
                                    m->receiver_user, m->receiver_device, m->txn, key_id);
    uint8_t key[KEY_BYTES], mac[DIGEST_BYTES];
    char *out = xcalloc(1, KEY_TEXT + 1);
    const struct digest_hkdf h = { .key = m->shared, .key_n = KEY_BYTES, .info = info, .info_n = strlen(info) };
    digest_hkdf(&h, key, sizeof(key));
    digest_hmac(key, sizeof(key), text, strlen(text), mac);
    explicit_bzero(key, sizeof(key));
    if (m->legacy) {
        memcpy(out, mac, sizeof(mac));
        overwrite64(out);
    } else {
        b64_key(out, mac);
    }
    return out;
}

char *sas_commitment(const char *key, const struct json *start)
{
    AUTO(str_clear) struct str text = STR_INIT(CANON_MAX);
    struct err e = { 0 };
    uint8_t hash[DIGEST_BYTES];
    char *out = xcalloc(1, KEY_TEXT + 1);
    str_puts(&text, key);
    if (json_print_canonical(&text, start, &e) < 0 || str_check(&text, &e) < 0) {
        free(out);
        return NULL;
    }
    digest_sha256(str_peek(&text), text.len, hash);
    b64_key(out, hash);
    return out;
}

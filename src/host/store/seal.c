/* seal.c - encrypts records and chunks of snapshots at rest: AES-256-GCM (NIST SP 800-38D, by GnuTLS).
 *
 * Encrypted ("sealed") bytes:
 *     magic[8]  u32 key id  nonce[12]  ciphertext  tag[16]
 *
 * The magic begins with a zero byte; no record and no zstd frame does. The key's id is the first four bytes
 * of SHA-256("phalanx store key" and the key). Nonces are random: a key is good for 2^32 records. The tag
 * also covers the place of the bytes (a record's number and stamp, a chunk's snapshot and index), so sealed
 * bytes cannot be moved to another place, not even with a correct checksum.
 */
#include <errno.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <sys/stat.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/hash.h"
#include "base/vec.h"
#include "host/store/seal.h"

enum {
    KEY_BYTES = 32,
    NONCE_BYTES = 12,
    TAG_BYTES = 16,
    MAGIC_BYTES = 8,
    HEAD_BYTES = MAGIC_BYTES + 4 + NONCE_BYTES
};
enum { KEYS_MAX = 16, KEY_FILE_BYTES_MAX = 64 * 1024 };
_Static_assert((int)HEAD_BYTES + (int)TAG_BYTES == (int)STORE_SEAL_BYTES, "what sealing adds");

static const char magic[MAGIC_BYTES] = {0, 'P', 'h', 'x', 'G', 'c', 'm', '1'};

struct seal_key {
    uint32_t id;
    gnutls_aead_cipher_hd_t cipher;
};
struct store_keys {
    char *path;
    VEC(struct seal_key) list; /* the first key encrypts */
};

/* --- the key file --------------------------------------------------------------------------------------- */

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_key(struct str line, uint8_t ret_bytes[KEY_BYTES])
{
    if (line.len != 2 * (size_t)KEY_BYTES)
        return false;
    for (size_t i = 0; i < KEY_BYTES; i++) {
        int high = hex_value(line.data[2 * i]), low = hex_value(line.data[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        ret_bytes[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static void add_key(struct store_keys *keys, uint8_t bytes[KEY_BYTES])
{
    static const char prefix[] = "phalanx store key";
    uint8_t named[sizeof prefix - 1 + KEY_BYTES], digest[32];
    gnutls_datum_t key = {bytes, KEY_BYTES};
    struct seal_key fresh;
    memcpy(named, prefix, sizeof prefix - 1);
    memcpy(named + sizeof prefix - 1, bytes, KEY_BYTES);
    sha256(named, sizeof named, digest);
    memcpy(&fresh.id, digest, sizeof fresh.id);
    CHECK(gnutls_aead_cipher_init(&fresh.cipher, GNUTLS_CIPHER_AES_256_GCM, &key) == 0);
    vec_push(&keys->list, fresh);
    gnutls_memset(named, 0, sizeof named);
}

static int parse_keys(struct store_keys *keys, struct str text, struct error *error)
{
    uint8_t bytes[KEY_BYTES];
    int rc = 0;
    for (int number = 1; rc == 0 && text.len; number++) {
        struct str line = text, rest = {0};
        str_cut(text, '\n', &line, &rest);
        text = rest;
        line = str_trim(line);
        if (line.len == 0 || line.data[0] == '#')
            continue;
        if (keys->list.len == KEYS_MAX)
            rc = error_set(error, ERROR_LIMIT, "%s:%d: more than %d keys", keys->path, number, (int)KEYS_MAX);
        else if (!read_key(line, bytes))
            rc = error_set(error, ERROR_INVALID, "%s:%d: a key is 64 hexadecimal digits", keys->path, number);
        else
            add_key(keys, bytes);
    }
    gnutls_memset(bytes, 0, sizeof bytes);
    if (rc == 0 && keys->list.len == 0)
        rc = error_set(error, ERROR_INVALID, "%s: contains no key", keys->path);
    return rc;
}

static int read_file(const char *path, struct buf *text, struct error *error)
{
    char chunk[4096];
    struct stat info;
    size_t got;
    FILE *file = fopen(path, "re");
    if (!file)
        return error_set_errno(error, errno, "%s", path);
    bool open_to_others = fstat(fileno(file), &info) < 0 || (S_ISREG(info.st_mode) && info.st_mode & 077);
    while (!open_to_others && text->len <= KEY_FILE_BYTES_MAX &&
           (got = fread(chunk, 1, sizeof chunk, file)) > 0)
        buf_add(text, chunk, got);
    bool failed = ferror(file) != 0;
    fclose(file);
    gnutls_memset(chunk, 0, sizeof chunk);
    if (open_to_others)
        return error_set(error, ERROR_DENIED, "%s: others than its owner may read it: chmod 600 it", path);
    if (failed || text->len > KEY_FILE_BYTES_MAX)
        return error_set(error, ERROR_INVALID, "%s is not a file of keys", path);
    return 0;
}

int store_keys_load(const char *path, struct store_keys **ret_keys, struct error *error)
{
    struct buf text BUF_CLEANUP = {0};
    int rc = read_file(path, &text, error);
    struct store_keys *keys = mem_alloc(sizeof *keys);
    keys->path = mem_alloc(strlen(path) + 1);
    memcpy(keys->path, path, strlen(path) + 1);
    if (rc == 0)
        rc = parse_keys(keys, buf_str(&text), error);
    if (text.data)
        gnutls_memset(text.data, 0, text.len);
    if (rc < 0)
        store_keys_free(keys);
    else
        *ret_keys = keys;
    return rc;
}

void store_keys_free(struct store_keys *keys)
{
    if (!keys)
        return;
    for (size_t i = 0; i < keys->list.len; i++)
        gnutls_aead_cipher_deinit(keys->list.items[i].cipher);
    vec_done(&keys->list);
    mem_free(keys->path);
    mem_free(keys);
}

/* --- sealing -------------------------------------------------------------------------------------------- */

enum { PLACE_BYTES = 17 };

static void write_place(const struct store_seal_place *place, uint8_t out[PLACE_BYTES])
{
    out[0] = (uint8_t)place->kind;
    store_put_u64(out + 1, place->a);
    store_put_u64(out + 9, place->b);
}

struct str store_seal(const struct store_keys *keys, const struct store_seal_place *place, struct str plain,
                      struct buf *out)
{
    uint8_t covered[PLACE_BYTES], nonce[NONCE_BYTES];
    if (!keys)
        return plain;
    const struct seal_key *key = &keys->list.items[0];
    size_t len = plain.len + TAG_BYTES;
    write_place(place, covered);
    CHECK(gnutls_rnd(GNUTLS_RND_NONCE, nonce, sizeof nonce) == 0);
    buf_clear(out);
    buf_reserve(out, HEAD_BYTES + len + 1);
    buf_add(out, magic, sizeof magic);
    buf_add(out, &key->id, sizeof key->id);
    buf_add(out, nonce, sizeof nonce);
    CHECK(gnutls_aead_cipher_encrypt(key->cipher, nonce, sizeof nonce, covered, sizeof covered, TAG_BYTES,
                                     plain.len ? plain.data : "", plain.len, out->data + out->len,
                                     &len) == 0);
    CHECK(len == plain.len + TAG_BYTES);
    out->len += len;
    return buf_str(out);
}

static int wrong_key(const struct store_keys *keys, const char *what, uint32_t id, struct error *error)
{
    struct buf known BUF_CLEANUP = {0};
    for (size_t i = 0; i < keys->list.len; i++)
        buf_printf(&known, "%s%08x", i ? ", " : "", keys->list.items[i].id);
    return error_set(error, ERROR_DENIED, "%s is encrypted with key %08x, and %s has %s", what, id,
                     keys->path, known.data);
}

int store_unseal(const struct store_keys *keys, const struct store_seal_place *place, struct str stored,
                 struct buf *out, struct str *ret_plain, struct error *error)
{
    char what[96];
    uint32_t id;
    if (stored.len < STORE_SEAL_BYTES || memcmp(stored.data, magic, sizeof magic) != 0) {
        *ret_plain = stored; /* the bytes were written before there was a key */
        return 0;
    }
    (void)snprintf(what, sizeof what, place->kind == STORE_SEAL_RECORD ? "record %llu" : "snapshot %llu",
                   (unsigned long long)place->a);
    memcpy(&id, stored.data + MAGIC_BYTES, sizeof id);
    if (!keys)
        return error_set(error, ERROR_DENIED,
                         "%s is encrypted: the file of its key is needed "
                         "(--encryption-key-file)",
                         what);
    const struct seal_key *key = NULL;
    for (size_t i = 0; i < keys->list.len && !key; i++)
        key = keys->list.items[i].id == id ? &keys->list.items[i] : NULL;
    if (!key)
        return wrong_key(keys, what, id, error);
    uint8_t covered[PLACE_BYTES];
    size_t sealed = stored.len - HEAD_BYTES, len = sealed - TAG_BYTES;
    write_place(place, covered);
    buf_clear(out);
    buf_reserve(out, len + 1);
    if (gnutls_aead_cipher_decrypt(key->cipher, stored.data + MAGIC_BYTES + 4, NONCE_BYTES, covered,
                                   sizeof covered, TAG_BYTES, stored.data + HEAD_BYTES, sealed, out->data,
                                   &len) < 0)
        return error_set(error, ERROR_CORRUPT, "%s: its bytes differ from those sealed with key %08x",
                         what, id);
    out->len = len;
    out->data[len] = 0;
    *ret_plain = buf_str(out);
    return 0;
}

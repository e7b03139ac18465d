#include "net/websocket.h"

#include <string.h>

#include "base/check.h"
#include "base/hash.h"

enum { FIN = 0x80, RESERVED = 0x70, OPCODE = 0x0f, MASKED = 0x80, LEN_16 = 126, LEN_64 = 127 };

void websocket_init(struct websocket *socket, enum websocket_role role, uint64_t message_max)
{
    *socket = (struct websocket){.role = role, .message_max = message_max};
}

/* --- reading -------------------------------------------------------------------------------------- */

static void broken(struct websocket *socket, enum websocket_code code, struct str why,
                   struct websocket_event *ret_event)
{
    socket->over = true;
    *ret_event = (struct websocket_event){.kind = WEBSOCKET_BROKEN, .bytes = why, .code = (uint16_t)code};
}

static bool is_control(uint8_t opcode)
{
    return opcode & 8;
}

/* Returns the size of the whole header, as far as its first bytes tell. */
static size_t header_size(const struct websocket *socket)
{
    if (socket->header_len < 2)
        return 2;
    uint8_t len = socket->header[1] & 0x7f;
    return 2u + (len == LEN_16 ? 2u : len == LEN_64 ? 8u : 0u) + (socket->header[1] & MASKED ? 4u : 0u);
}

/* Checks the first two bytes of a frame. Returns NULL if they are valid, else the reason. */
static const char *check_start(const struct websocket *socket)
{
    uint8_t first = socket->header[0], second = socket->header[1], opcode = first & OPCODE;
    if (first & RESERVED)
        return "a reserved bit is set and no extension was agreed on";
    if (opcode > WEBSOCKET_OP_PONG || (opcode > WEBSOCKET_BINARY && opcode < WEBSOCKET_OP_CLOSE))
        return "unknown opcode";
    if (is_control(opcode) && (!(first & FIN) || (second & 0x7f) > WEBSOCKET_CONTROL_MAX))
        return "a control frame is fragmented or longer than 125 bytes";
    if (opcode == WEBSOCKET_CONTINUATION && !socket->in_message)
        return "a continuation of no message";
    if ((opcode == WEBSOCKET_TEXT || opcode == WEBSOCKET_BINARY) && socket->in_message)
        return "a new message inside another";
    if (!(second & MASKED) == (socket->role == WEBSOCKET_SERVER))
        return socket->role == WEBSOCKET_SERVER ? "a client's frame is not masked"
                                                : "a server's frame is masked";
    return NULL;
}

static uint64_t big_endian(const uint8_t *bytes, size_t len)
{
    uint64_t value = 0;
    for (size_t i = 0; i < len; i++)
        value = value << 8 | bytes[i];
    return value;
}

/* Begins a frame, whose header is complete. Returns false if it broke a rule. */
static bool begin_frame(struct websocket *socket, struct websocket_event *ret_event)
{
    uint8_t len = socket->header[1] & 0x7f;
    size_t wide = len == LEN_16 ? 2 : len == LEN_64 ? 8 : 0;
    uint64_t frame_len = wide ? big_endian(socket->header + 2, wide) : len;
    uint64_t least = wide == 2 ? LEN_16 : wide == 8 ? UINT64_C(0x10000) : 0;
    if (frame_len < least || frame_len >> 63) {
        broken(socket, WEBSOCKET_PROTOCOL_ERROR, STR("a length that is not written in the fewest bytes"),
               ret_event);
        return false;
    }
    socket->opcode = socket->header[0] & OPCODE;
    bool control = is_control(socket->opcode);
    if (!control && socket->opcode != WEBSOCKET_CONTINUATION) {
        socket->message_len = 0;
        socket->text = socket->opcode == WEBSOCKET_TEXT;
        socket->first = true;
    }
    if (!control && frame_len > socket->message_max - socket->message_len) {
        broken(socket, WEBSOCKET_TOO_LARGE, STR("the message is too long"), ret_event);
        return false;
    }
    memset(socket->mask, 0, sizeof socket->mask);
    if (socket->header[1] & MASKED)
        memcpy(socket->mask, socket->header + 2 + wide, sizeof socket->mask);
    socket->in_frame = true;
    socket->last_frame = socket->header[0] & FIN;
    socket->frame_len = frame_len;
    socket->frame_done = 0;
    socket->header_len = 0;
    if (!control) {
        socket->message_len += frame_len;
        socket->in_message = true;
    }
    return true;
}

static bool code_allowed(uint16_t code)
{
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) || (code >= 3000 && code <= 4999);
}

static void end_control(struct websocket *socket, struct websocket_event *ret_event)
{
    struct str payload = {socket->control, (size_t)socket->frame_len};
    socket->in_frame = false;
    if (socket->opcode != WEBSOCKET_OP_CLOSE) {
        bool ping = socket->opcode == WEBSOCKET_OP_PING;
        *ret_event =
            (struct websocket_event){.kind = ping ? WEBSOCKET_PING : WEBSOCKET_PONG, .bytes = payload};
        return;
    }
    uint16_t code = WEBSOCKET_NO_CODE;
    if (payload.len > 0) {
        code = payload.len >= 2 ? (uint16_t)big_endian((const uint8_t *)payload.data, 2) : 0;
        if (!code_allowed(code)) {
            broken(socket, WEBSOCKET_PROTOCOL_ERROR, STR("a close frame with a code that may not be sent"),
                   ret_event);
            return;
        }
        payload = (struct str){payload.data + 2, payload.len - 2};
    }
    if (!str_is_utf8(payload)) {
        broken(socket, WEBSOCKET_BAD_TEXT, STR("the reason of the close is not UTF-8"), ret_event);
        return;
    }
    socket->over = true;
    *ret_event = (struct websocket_event){.kind = WEBSOCKET_CLOSED, .bytes = payload, .code = code};
}

static void unmask(struct websocket *socket, char *data, size_t len)
{
    if (socket->role != WEBSOCKET_SERVER)
        return;
    for (size_t i = 0; i < len; i++)
        data[i] = (char)((uint8_t)data[i] ^ socket->mask[(socket->frame_done + i) & 3]);
}

/* Reads the payload, as far as it has arrived. Returns false if there is no event yet. */
static bool read_payload(struct websocket *socket, char *data, size_t len, size_t *used,
                         struct websocket_event *ret_event)
{
    uint64_t left = socket->frame_len - socket->frame_done;
    size_t take = left < len ? (size_t)left : len;
    unmask(socket, data, take);
    *used += take;
    if (is_control(socket->opcode)) {
        if (take)
            memcpy(socket->control + socket->frame_done, data, take);
        socket->frame_done += take;
        if (socket->frame_done < socket->frame_len)
            return false;
        end_control(socket, ret_event);
        return true;
    }
    socket->frame_done += take;
    bool frame_over = socket->frame_done == socket->frame_len,
         message_over = frame_over && socket->last_frame;
    socket->in_frame = !frame_over;
    if (take == 0 && !message_over)
        return false;
    *ret_event = (struct websocket_event){.kind = WEBSOCKET_DATA,
                                          .bytes = {data, take},
                                          .first = socket->first,
                                          .last = message_over,
                                          .text = socket->text};
    socket->first = false;
    if (message_over)
        socket->in_message = false;
    return true;
}

void websocket_next(struct websocket *socket, char *data, size_t len, size_t *ret_used,
                    struct websocket_event *ret_event)
{
    size_t used = 0;
    *ret_event = (struct websocket_event){.kind = WEBSOCKET_MORE};
    while (!socket->over) {
        if (socket->in_frame) {
            bool whole = socket->frame_done == socket->frame_len;
            if ((used == len && !whole) || read_payload(socket, data + used, len - used, &used, ret_event))
                break;
            continue;
        }
        size_t wanted = header_size(socket);
        while (used < len && socket->header_len < wanted) {
            socket->header[socket->header_len++] = (uint8_t)data[used++];
            wanted = header_size(socket);
        }
        const char *wrong = socket->header_len >= 2 ? check_start(socket) : NULL;
        if (wrong)
            broken(socket, WEBSOCKET_PROTOCOL_ERROR, str_from(wrong), ret_event);
        if (wrong || socket->header_len < wanted || !begin_frame(socket, ret_event))
            break;
    }
    if (socket->over && ret_event->kind == WEBSOCKET_MORE)
        used = len; /* bytes after a close are ignored */
    *ret_used = used;
}

/* --- writing -------------------------------------------------------------------------------------- */

static void put_masked(struct buf *out, const uint8_t *mask, size_t offset, struct str bytes)
{
    size_t start = out->len;
    buf_add_str(out, bytes);
    for (size_t i = 0; mask && i < bytes.len; i++)
        out->data[start + i] = (char)((uint8_t)out->data[start + i] ^ mask[(offset + i) & 3]);
}

void websocket_put(struct buf *out, enum websocket_opcode opcode, const uint8_t *mask, struct str head,
                   struct str bytes)
{
    uint64_t len = (uint64_t)head.len + bytes.len;
    CHECK(!is_control((uint8_t)opcode) || len <= WEBSOCKET_CONTROL_MAX);
    uint8_t masked = mask ? MASKED : 0;
    size_t wide = len < LEN_16 ? 0 : len < 0x10000 ? 2 : 8;
    buf_add_char(out, (char)(FIN | opcode));
    buf_add_char(out, (char)(masked | (wide == 0 ? (uint8_t)len : wide == 2 ? LEN_16 : LEN_64)));
    for (size_t i = wide; i-- > 0;)
        buf_add_char(out, (char)(len >> (8 * i) & 0xff));
    if (mask)
        buf_add(out, mask, 4);
    put_masked(out, mask, 0, head);
    put_masked(out, mask, head.len, bytes);
}

void websocket_put_close(struct buf *out, const uint8_t *mask, enum websocket_code code, struct str reason)
{
    char head[2] = {(char)(code >> 8), (char)(code & 0xff)};
    if (reason.len > WEBSOCKET_CONTROL_MAX - 2) {
        reason.len = WEBSOCKET_CONTROL_MAX - 2;
        while (reason.len && ((unsigned char)reason.data[reason.len] & 0xc0) == 0x80)
            reason.len--;
    }
    websocket_put(out, WEBSOCKET_OP_CLOSE, mask, (struct str){head, sizeof head}, reason);
}

/* --- the handshake -------------------------------------------------------------------------------- */

/* Encodes base64 (RFC 4648 section 4) with padding. `ret_text` has 4 bytes for each 3 begun, and a NUL. */
static void base64(const uint8_t *bytes, size_t len, char *ret_text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < len; i += 3) {
        size_t have = len - i < 3 ? len - i : 3;
        uint32_t group = 0;
        for (size_t k = 0; k < 3; k++)
            group = group << 8 | (k < have ? bytes[i + k] : 0u);
        for (size_t k = 0; k < 4; k++)
            *ret_text++ = k <= have ? digits[group >> (18 - 6 * k) & 63] : '=';
    }
    *ret_text = 0;
}

bool websocket_key_valid(struct str key)
{
    if (key.len != WEBSOCKET_KEY_BYTES || !str_ends(key, STR("==")))
        return false;
    for (size_t i = 0; i < WEBSOCKET_KEY_BYTES - 2; i++) {
        char c = key.data[i];
        bool digit = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!digit && c != '+' && c != '/')
            return false;
    }
    return true;
}

void websocket_accept(struct str key, char ret_accept[WEBSOCKET_ACCEPT_BYTES + 1])
{
    static const char guid[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; /* RFC 6455 section 1.3 */
    char text[WEBSOCKET_KEY_BYTES + sizeof guid];
    uint8_t digest[20];
    CHECK(key.len == WEBSOCKET_KEY_BYTES);
    memcpy(text, key.data, key.len);
    memcpy(text + key.len, guid, sizeof guid);
    sha1(text, key.len + sizeof guid - 1, digest);
    base64(digest, sizeof digest, ret_accept);
}

void websocket_key(const uint8_t random[16], char ret_key[WEBSOCKET_KEY_BYTES + 1])
{
    base64(random, 16, ret_key);
}

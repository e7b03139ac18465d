/* websocket.h - the framing of RFC 6455, over bytes that the caller reads and writes.
 *
 *     websocket_init(&socket, WEBSOCKET_SERVER, MESSAGE_MAX);
 *     while ((websocket_next(&socket, data, len, &used, &event), event.kind) != WEBSOCKET_MORE) {
 *         ... WEBSOCKET_DATA: a piece of a message; WEBSOCKET_PING: answer with websocket_put(PONG) ...
 *         data += used; len -= used;
 *     }
 * Payload is passed on as it arrives, so no message is ever stored; how the input is split affects only where
 * the pieces end. After WEBSOCKET_CLOSED or WEBSOCKET_BROKEN all further bytes are discarded.
 *
 * Pure: no I/O, no memory but struct websocket. Extensions and subprotocols are up to the caller.
 */
#ifndef PHX_NET_WEBSOCKET_H
#define PHX_NET_WEBSOCKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum websocket_role { WEBSOCKET_SERVER, WEBSOCKET_CLIENT }; /* a client's frames are masked, a server's not */

enum websocket_opcode { /* RFC 6455 section 5.2 */
                        WEBSOCKET_CONTINUATION = 0,
                        WEBSOCKET_TEXT = 1,
                        WEBSOCKET_BINARY = 2,
                        WEBSOCKET_OP_CLOSE = 8,
                        WEBSOCKET_OP_PING = 9,
                        WEBSOCKET_OP_PONG = 10,
};

enum websocket_code { /* RFC 6455 section 7.4.1 */
                      WEBSOCKET_NORMAL = 1000,
                      WEBSOCKET_GOING_AWAY = 1001,
                      WEBSOCKET_PROTOCOL_ERROR = 1002,
                      WEBSOCKET_UNSUPPORTED = 1003,
                      WEBSOCKET_NO_CODE = 1005, /* never sent: the close frame had no code */
                      WEBSOCKET_BAD_TEXT = 1007,
                      WEBSOCKET_POLICY = 1008,
                      WEBSOCKET_TOO_LARGE = 1009,
                      WEBSOCKET_INTERNAL = 1011,
};

enum {
    WEBSOCKET_CONTROL_MAX = 125, /* bytes of a control frame */
    WEBSOCKET_HEADER_MAX = 14,
    WEBSOCKET_KEY_BYTES = 24,
    WEBSOCKET_ACCEPT_BYTES = 28,
};

struct websocket {
    enum websocket_role role;
    uint64_t message_max; /* bytes of one message, all its fragments together */
    /* private */
    uint8_t header[WEBSOCKET_HEADER_MAX];
    uint8_t header_len, opcode, mask[4];
    bool in_frame, last_frame, in_message, text, first, over;
    uint64_t frame_len, frame_done, message_len;
    char control[WEBSOCKET_CONTROL_MAX];
};

enum websocket_event_kind {
    WEBSOCKET_MORE, /* all bytes were used and no event is complete yet */
    WEBSOCKET_DATA, /* `bytes` of a message; `first` and `last` mark its beginning and end */
    WEBSOCKET_PING, /* `bytes` go into the pong */
    WEBSOCKET_PONG,
    WEBSOCKET_CLOSED, /* the peer's close frame: `code`, its reason in `bytes` */
    WEBSOCKET_BROKEN, /* the peer broke a rule: close with `code`; `bytes` names the rule */
};
struct websocket_event {
    enum websocket_event_kind kind;
    struct str bytes; /* inside `data`, or inside the socket until the next call */
    bool first, last, text;
    uint16_t code;
};

/* Starts one side of a connection. `message_max` is the largest message in bytes that is accepted. */
void websocket_init(struct websocket *socket, enum websocket_role role, uint64_t message_max);

/* Reads up to the next event, and stores how many bytes of `data` it used. Unmasks `data` in place. */
void websocket_next(struct websocket *socket, char *data, size_t len, size_t *ret_used,
                    struct websocket_event *ret_event);

/* Appends one whole frame (FIN set) whose payload is `head` and then `bytes`. `mask`: 4 unpredictable bytes
 * from a client; NULL from a server. */
void websocket_put(struct buf *out, enum websocket_opcode opcode, const uint8_t *mask, struct str head,
                   struct str bytes);
/* Appends a close frame. The reason is cut at a character's end to what fits. */
void websocket_put_close(struct buf *out, const uint8_t *mask, enum websocket_code code, struct str reason);

/* Returns whether `key` is a valid Sec-WebSocket-Key of a client: 16 bytes in base64. */
bool websocket_key_valid(struct str key);
/* Writes the Sec-WebSocket-Accept for a valid key, NUL-terminated. */
void websocket_accept(struct str key, char ret_accept[WEBSOCKET_ACCEPT_BYTES + 1]);
/* Writes 16 random bytes as a key, NUL-terminated. */
void websocket_key(const uint8_t random[16], char ret_key[WEBSOCKET_KEY_BYTES + 1]);

#endif

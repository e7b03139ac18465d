/* first.c - detects by the first bytes that only one side speaks TLS, and lets both sides know.
 *
 * A listener without TLS recognises a ClientHello, and answers with text that is no TLS record. A listener
 * with TLS that gets anything but a record answers with an alert, as a TLS library would. An alert of seven
 * bytes could be the beginning of a frame (core/agent/codec.h), but not if the connection ends after it. */
#include "host/wire/internal.h"

enum { HELLO_HEADER = 9, RECORD_HEADER = 5, ALERT_BYTES = 7 };
enum { RECORD_CHANGE_CIPHER = 20, RECORD_ALERT, RECORD_HANDSHAKE, RECORD_DATA };

static uint8_t at(struct str bytes, size_t i)
{
    return (uint8_t)bytes.data[i];
}

static bool may_be_record(struct str bytes)
{
    return at(bytes, 0) >= RECORD_CHANGE_CIPHER && at(bytes, 0) <= RECORD_DATA &&
           (bytes.len < 2 || at(bytes, 1) == 3);
}

/* Returns whether the bytes are a ClientHello. The lengths of the record and of the ClientHello in it must
 * match, which no frame does by chance. */
static bool is_client_hello(struct str bytes)
{
    if (bytes.len < HELLO_HEADER || at(bytes, 0) != RECORD_HANDSHAKE || at(bytes, 1) != 3)
        return false;
    uint32_t record = (uint32_t)at(bytes, 3) << 8 | at(bytes, 4);
    uint32_t hello = (uint32_t)at(bytes, 6) << 16 | (uint32_t)at(bytes, 7) << 8 | at(bytes, 8);
    return at(bytes, RECORD_HEADER) == 1 && record == hello + 4;
}

static bool is_alert(struct str bytes)
{
    return bytes.len >= ALERT_BYTES && at(bytes, 0) == RECORD_ALERT && at(bytes, 1) == 3 &&
           at(bytes, 3) == 0 && at(bytes, 4) == 2 && (at(bytes, 5) == 1 || at(bytes, 5) == 2);
}

bool wire_first_wrong(const struct wire_conn *conn, struct str bytes, enum wire_reason *ret_reason,
                      const char **ret_why)
{
    CHECK(bytes.len > 0);
    if (str_starts(bytes, STR("HTTP/"))) {
        *ret_reason = WIRE_PEER_HTTP;
        *ret_why = "it answers in HTTP";
    } else if (conn->tls && !may_be_record(bytes)) {
        *ret_reason = WIRE_PEER_PLAIN;
        *ret_why = "it speaks no TLS, and this side does";
    } else if (!conn->tls && is_client_hello(bytes)) {
        *ret_reason = WIRE_PEER_TLS;
        *ret_why = "it speaks TLS, and this side does not";
    } else {
        return false;
    }
    return true;
}

bool wire_last_wrong(const struct wire_conn *conn, struct str bytes, enum wire_reason *ret_reason,
                     const char **ret_why)
{
    if (conn->tls || conn->framed || !is_alert(bytes))
        return false;
    *ret_reason = WIRE_PEER_TLS;
    *ret_why = "it answers with an alert of TLS";
    return true;
}

struct str wire_first_answer(enum wire_reason reason)
{
    static const char alert[ALERT_BYTES] = {RECORD_ALERT, 3, 3, 0, 2, 2, 10}; /* fatal, unexpected_message */
    if (reason == WIRE_PEER_PLAIN)
        return (struct str){alert, sizeof alert};
    return reason == WIRE_PEER_TLS ? STR("no TLS is spoken here\n") : (struct str){0};
}

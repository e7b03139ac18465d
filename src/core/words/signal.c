/* signal.c - checks that signals are well formed. */
#include "core/words/signal.h"

#include "base/check.h"

_Static_assert(SIGNAL_OCCUR == 1 && SIGNAL_ONCE == 3 && SEVERITY_NOTICE == 1 && SEVERITY_CRITICAL == 4,
               "the numbers are those of the wire and of the log; zero is none of them");

static bool is_code_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

static bool is_code(struct str code)
{
    size_t slash = 0, slashes = 0;
    if (code.len < 3 || code.len > SIGNAL_CODE_MAX)
        return false;
    for (size_t i = 0; i < code.len; i++) {
        if (code.data[i] == '/') {
            slash = i;
            slashes++;
        } else if (!is_code_byte(code.data[i])) {
            return false;
        }
    }
    return slashes == 1 && slash > 0 && slash + 1 < code.len;
}

static bool is_place(struct str place)
{
    if (place.len > SIGNAL_PLACE_MAX)
        return false;
    for (size_t i = 0; i < place.len; i++)
        if (place.data[i] < 0x20 || place.data[i] > 0x7e)
            return false;
    return true;
}

static bool is_text(struct str text)
{
    return text.len <= SIGNAL_EVIDENCE_MAX && str_is_utf8(text) &&
           !(text.len && memchr(text.data, 0, text.len));
}

bool signal_is_valid(const struct signal *signal)
{
    return is_code(signal->code) && is_place(signal->place) && is_text(signal->evidence) &&
           signal->assertion >= SIGNAL_OCCUR && signal->assertion <= SIGNAL_ONCE &&
           signal->severity >= SEVERITY_NOTICE && signal->severity <= SEVERITY_CRITICAL &&
           signal->chip >= -1 && signal->first_ns <= signal->last_ns && signal->count > 0;
}

struct signal signal_now(struct str code, enum signal_assertion assertion, enum signal_severity severity,
                         struct str evidence, int64_t now_ns)
{
    struct signal signal = {.code = code,
                            .evidence = evidence,
                            .assertion = assertion,
                            .severity = severity,
                            .chip = -1,
                            .first_ns = now_ns,
                            .last_ns = now_ns,
                            .count = 1};
    CHECK(signal_is_valid(&signal));
    return signal;
}

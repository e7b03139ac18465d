#include "base/error.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"

const char *error_name(int code)
{
    switch ((enum error_code)code) {
    case ERROR_NONE:
        return "NONE";
    case ERROR_INVALID:
        return "INVALID";
    case ERROR_NOT_FOUND:
        return "NOT_FOUND";
    case ERROR_EXISTS:
        return "EXISTS";
    case ERROR_CONFLICT:
        return "CONFLICT";
    case ERROR_LIMIT:
        return "LIMIT";
    case ERROR_FENCED:
        return "FENCED";
    case ERROR_UNAVAILABLE:
        return "UNAVAILABLE";
    case ERROR_TIMEOUT:
        return "TIMEOUT";
    case ERROR_IO:
        return "IO";
    case ERROR_NO_SPACE:
        return "NO_SPACE";
    case ERROR_CORRUPT:
        return "CORRUPT";
    case ERROR_UNSUPPORTED:
        return "UNSUPPORTED";
    case ERROR_DENIED:
        return "DENIED";
    }
    return "UNKNOWN";
}

/* Stores the message. Messages quote users and peers, so the text is made printable here: control characters
 * become spaces, bytes that are not UTF-8 become '?', and a text that does not fit ends in "..." on a
 * character boundary. */
static void store_text(struct error *error, const char *text)
{
    size_t len = strlen(text), kept = 0, limit = ERROR_TEXT_MAX - 1;
    bool cut = len > limit;
    if (cut)
        limit -= 3;
    for (size_t at = 0; at < len && kept < limit;) {
        size_t size = str_utf8_len(text + at, len - at);
        if (size == 0) {
            error->text[kept++] = '?';
            at++;
        } else if (kept + size > limit) {
            break;
        } else {
            for (size_t i = 0; i < size; i++)
                error->text[kept++] =
                    (unsigned char)text[at + i] < 0x20 || text[at + i] == 0x7f ? ' ' : text[at + i];
            at += size;
        }
    }
    memcpy(error->text + kept, "...", cut ? 3 : 0);
    error->text[kept + (cut ? 3 : 0)] = 0;
}

/* Large enough that the message itself shows whether it had to be cut. */
enum { WORK_MAX = 2 * ERROR_TEXT_MAX + 8 };

int error_set(struct error *error, enum error_code code, const char *format, ...)
{
    CHECK(code < 0);
    if (!error)
        return code;
    char work[WORK_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(work, sizeof work, format, args);
    va_end(args);
    error->code = code;
    store_text(error, work);
    return code;
}

int error_set_errno(struct error *error, int errno_value, const char *format, ...)
{
    enum error_code code = errno_value == ENOSPC || errno_value == EDQUOT ? ERROR_NO_SPACE : ERROR_IO;
    if (!error)
        return code;
    char context[ERROR_TEXT_MAX], work[WORK_MAX], reason[128];
    va_list args;
    va_start(args, format);
    vsnprintf(context, sizeof context, format, args);
    va_end(args);
    snprintf(work, sizeof work, "%s: %s", context, strerror_r(errno_value, reason, sizeof reason));
    error->code = code;
    store_text(error, work);
    return code;
}

int error_wrap(struct error *error, const char *format, ...)
{
    if (!error)
        return ERROR_INVALID;
    CHECK(error->code < 0);
    char context[ERROR_TEXT_MAX], work[WORK_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(context, sizeof context, format, args);
    va_end(args);
    snprintf(work, sizeof work, "%s: %s", context, error->text);
    store_text(error, work);
    return error->code;
}

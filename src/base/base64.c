#include "base/base64.h"

#include <stdint.h>

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(struct str bytes, struct buf *out)
{
    for (size_t i = 0; i < bytes.len; i += 3) {
        const unsigned char *in = (const unsigned char *)bytes.data + i;
        size_t left = bytes.len - i;
        uint32_t bits =
            (uint32_t)in[0] << 16 | (left > 1 ? (uint32_t)in[1] << 8 : 0) | (left > 2 ? in[2] : 0);
        char text[4] = {alphabet[bits >> 18], alphabet[bits >> 12 & 63],
                        left > 1 ? alphabet[bits >> 6 & 63] : '=', left > 2 ? alphabet[bits & 63] : '='};
        buf_add(out, text, sizeof text);
    }
}

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool base64_decode(struct str text, struct buf *out)
{
    uint32_t bits = 0;
    int count = 0, padding = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (c == '\n' || c == '\r')
            continue;
        int value = value_of(c);
        if (c == '=' && count >= 2) {
            padding++;
            value = 0;
        } else if (value < 0 || padding > 0) {
            return false;
        }
        bits = bits << 6 | (uint32_t)value;
        if (++count < 4)
            continue;
        if ((padding == 1 && (bits & 0xff)) || (padding == 2 && (bits & 0xffff)))
            return false;
        char bytes[3] = {(char)(bits >> 16), (char)(bits >> 8), (char)bits};
        if (out)
            buf_add(out, bytes, (size_t)(3 - padding));
        if (padding > 0 && i + 1 < text.len && text.data[i + 1] != '\n' && text.data[i + 1] != '\r')
            return false;
        bits = 0;
        count = 0;
    }
    return count == 0;
}

void base64url_encode(struct str bytes, struct buf *out)
{
    size_t start = out->len;
    base64_encode(bytes, out);
    while (out->len > start && out->data[out->len - 1] == '=')
        out->data[--out->len] = 0;
    for (size_t i = start; i < out->len; i++)
        out->data[i] = out->data[i] == '+' ? '-' : out->data[i] == '/' ? '_' : out->data[i];
}

bool base64url_decode(struct str text, struct buf *out)
{
    struct buf plain BUF_CLEANUP = {0};
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i] == '-' ? '+' : text.data[i] == '_' ? '/' : text.data[i];
        if (value_of(c) < 0 || text.data[i] == '+' || text.data[i] == '/')
            return false;
        buf_add_char(&plain, c);
    }
    for (; plain.len % 4 != 0; buf_add_char(&plain, '='))
        if (plain.len % 4 == 1)
            return false;
    return base64_decode(buf_str(&plain), out);
}

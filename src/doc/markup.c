/* markup.c - text in XML and HTML. */
#include "doc/markup.h"

void markup_add_char(struct buf *out, char c)
{
    switch (c) {
    case '&':
        buf_add_str(out, STR("&amp;"));
        break;
    case '<':
        buf_add_str(out, STR("&lt;"));
        break;
    case '>':
        buf_add_str(out, STR("&gt;"));
        break;
    case '"':
        buf_add_str(out, STR("&quot;"));
        break;
    default:
        if ((unsigned char)c >= ' ')
            buf_add_char(out, c);
    }
}

void markup_add(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++)
        markup_add_char(out, text.data[i]);
}

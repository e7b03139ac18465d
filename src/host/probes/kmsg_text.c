/* kmsg_text.c - reading the parts of a line of the kernel log. */
#include "host/probes/internal.h"

#include <ctype.h>

/* Converts "PCI:0000:9b:00" or "0000:9B:00.0" to sysfs' form, "0000:9b:00.0". */
struct probe_place kmsg_pci_place(const char *kind, struct str address)
{
    char text[32] = {0};
    if (str_starts(address, STR("PCI:")))
        address = (struct str){address.data + 4, address.len - 4};
    size_t len = address.len < sizeof text - 1 ? address.len : sizeof text - 1;
    bool function = false;
    for (size_t i = 0; i < len; i++) {
        text[i] = (char)tolower((unsigned char)address.data[i]);
        function = function || text[i] == '.';
    }
    return place_of("%s/%s%s", kind, text, function ? "" : ".0");
}

bool kmsg_has(struct str text, const char *part)
{
    return text.len > 0 && memmem(text.data, text.len, part, strlen(part)) != NULL;
}

bool kmsg_hex(struct str text, const char *before, uint64_t *ret_value)
{
    const char *found = text.len ? memmem(text.data, text.len, before, strlen(before)) : NULL;
    uint64_t value = 0;
    size_t digits = 0;
    if (!found)
        return false;
    for (const char *at = found + strlen(before); at < text.data + text.len && digits < 16; at++, digits++) {
        char c = (char)tolower((unsigned char)*at);
        if (!isxdigit((unsigned char)c))
            break;
        value = value << 4 | (uint64_t)(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    *ret_value = value;
    return digits > 0;
}

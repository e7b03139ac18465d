#include "job/crc.h"

#include <pthread.h>

#define POLYNOMIAL 0x82f63b78u /* 0x1edc6f41, bits reversed */

static uint32_t table[8][256];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void fill_table(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ ((crc & 1) != 0 ? POLYNOMIAL : 0);
        table[0][byte] = crc;
    }
    for (size_t slice = 1; slice < 8; slice++)
        for (size_t byte = 0; byte < 256; byte++)
            table[slice][byte] = (table[slice - 1][byte] >> 8) ^ table[0][table[slice - 1][byte] & 0xff];
}

uint32_t job_crc32c(uint32_t crc, const void *data, size_t len)
{
    pthread_once(&table_once, fill_table);
    const uint8_t *bytes = data;
    crc = ~crc;
    for (; len >= 8; len -= 8, bytes += 8) {
        uint32_t low = crc ^ ((uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
                              (uint32_t)bytes[3] << 24);
        crc = table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^ table[5][low >> 16 & 0xff] ^
              table[4][low >> 24] ^ table[3][bytes[4]] ^ table[2][bytes[5]] ^ table[1][bytes[6]] ^
              table[0][bytes[7]];
    }
    for (; len > 0; len--, bytes++)
        crc = (crc >> 8) ^ table[0][(crc ^ *bytes) & 0xff];
    return ~crc;
}

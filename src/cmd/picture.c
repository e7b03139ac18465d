#include "cmd/picture.h"

#include <stdio.h>

#include "cmd/client.h"

int picture_write(const char *path, const char *option, const struct buf *picture)
{
    FILE *file = fopen(path, "we");
    bool good = file && fwrite(picture->data, 1, picture->len, file) == picture->len;
    good = file && fclose(file) == 0 && good;
    if (!good)
        say("%s %s: %m", option, path);
    return good ? EXIT_OK : EXIT_FAILED;
}

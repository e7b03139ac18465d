#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

void check_failed(const char *file, int line, const char *condition)
{
    fflush(stdout);
    fprintf(stderr, "%s:%d: check failed: %s\n", file, line, condition);
    abort();
}

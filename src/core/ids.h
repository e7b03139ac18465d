/* ids.h - the names that things keep for ever.
 *
 * An object's uid is made from the log position that created it: (seq << 20) + index within the step. It is
 * never used twice and is the same after replay. On the API it is shown as a UUID (uid_text).
 */
#ifndef PHX_CORE_IDS_H
#define PHX_CORE_IDS_H

#include <stdint.h>
#include <stddef.h>

#include "base/str.h"

typedef uint64_t obj_id;   /* 0: none */
typedef uint32_t machine_id; /* index into cluster->machines */
#define MACHINE_NONE UINT32_MAX

enum { UID_TEXT_MAX = 37, SUFFIX_TEXT_MAX = 6 };

/* "xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx", a bijection of the id. */
void uid_text(obj_id id, char ret_text[UID_TEXT_MAX]);
/* The reverse; false: no such text. */
bool uid_parse(struct str text, obj_id *ret_id);
/* Five characters of Kubernetes' name alphabet (bcdfghjklmnpqrstvwxz2456789), derived from the id. */
void uid_suffix(obj_id id, char ret_text[SUFFIX_TEXT_MAX]);

#endif

/* ids.h - permanent identifiers.
 *
 * An object's uid is made from the log position that created it: uid_base() + (seq << 20) + index within the
 * step. It is never used twice, grows with the log, and is the same after replay. The identity is random
 * bits from the cluster's first boot (event.h), so objects at the same position of two clusters' logs have
 * different uids. The API shows a uid as a UUID (uid_text).
 *
 * A log that was restored from a backup has positions again that the lost part had, and machines may still
 * run what was made there. Therefore each boot moves uids ahead of the log, with the time that has passed
 * since the first one (uids_ahead).
 */
#ifndef PHX_CORE_WORDS_IDS_H
#define PHX_CORE_WORDS_IDS_H

#include <stdint.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/str.h"

typedef uint64_t obj_id;     /* 0: none */
typedef uint32_t machine_id; /* index into cluster->machines */
#define MACHINE_NONE UINT32_MAX

enum { UID_TEXT_MAX = 37, SUFFIX_TEXT_MAX = 6, NAME_PREFIX_MAX = 58 };

enum {
    GANG_KEY_BYTES = 32
}; /* of an attempt's key, and of the secret that it is made from (core_gang_key) */

enum { UID_POSITION_BITS = 36, UID_POSITION_MS = 8 };

_Static_assert(UID_POSITION_BITS + 20 < 57, "uids stay below 2^57");

/* Returns the offset of the cluster's log positions: below 2^56 without `ahead`, so uids of 2^36 positions
 * stay below 2^57. Agents use the bits above for the containers of a Pod. */
static inline obj_id uid_base(uint64_t identity, uint64_t ahead)
{
    return (identity >> 8) + (ahead << 20);
}
/* Returns by how many log positions uids are ahead after a boot at position `seq`, `ms` after the first one;
 * they were `ahead` before. The lost part of a restored log has other uids than what follows it, unless its
 * last controller wrote more than a record in UID_POSITION_MS on average since its boot. After 16 years uids
 * no longer move. */
uint64_t uids_ahead(uint64_t ahead, uint64_t seq, uint64_t ms);

/* Writes "xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx", a bijection of the id. */
void uid_text(obj_id id, char ret_text[UID_TEXT_MAX]);
/* The inverse; false: the text is no uid. */
bool uid_parse(struct str text, obj_id *ret_id);
/* Writes five characters of Kubernetes' name alphabet (bcdfghjklmnpqrstvwxz2456789), derived from the id. */
void uid_suffix(obj_id id, char ret_text[SUFFIX_TEXT_MAX]);
/* Makes a name for metadata.generateName: at most NAME_PREFIX_MAX bytes of the prefix, and a suffix from
 * random bits (write_event.draw). */
struct str generated_name(struct arena *arena, struct str prefix, uint64_t draw);

#endif

/* ids.h - permanent identifiers.
 *
 * An object's uid is made from the log position that created it: uid_base() + (seq << 20) + index within the
 * step. It is never used twice, grows with the log, and is the same after replay. The identity is random
 * bits from the cluster's first boot (event.h), so objects at the same position of two clusters' logs have
 * different uids. The API shows a uid as a UUID (uid_text).
 *
 * A log that was restored from a backup reuses the positions of its lost part, and machines may still run
 * tasks that the lost part created. Therefore each boot moves uids ahead of the log, in proportion to the
 * time since the first boot (uids_ahead).
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
/* Returns by how many log positions uids are ahead of the log after a boot at position `seq`, `ms`
 * milliseconds after the first boot; `ahead` is the value before. New uids differ from those of a restored
 * log's lost part, unless its last controller wrote, on average since its boot, more than one record in
 * UID_POSITION_MS milliseconds. After 16 years uids no longer move. */
uint64_t uids_ahead(uint64_t ahead, uint64_t seq, uint64_t ms);

/* Writes the id as a UUID, "xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx". Different ids have different texts. */
void uid_text(obj_id id, char ret_text[UID_TEXT_MAX]);
/* Reads what uid_text wrote. Returns false for any other text. */
bool uid_parse(struct str text, obj_id *ret_id);
/* Writes five characters of Kubernetes' name alphabet (bcdfghjklmnpqrstvwxz2456789), derived from the id. */
void uid_suffix(obj_id id, char ret_text[SUFFIX_TEXT_MAX]);
/* Returns a name for metadata.generateName: at most NAME_PREFIX_MAX bytes of the prefix, and a suffix made
 * from the random bits `draw` (write_event.draw). */
struct str generated_name(struct arena *arena, struct str prefix, uint64_t draw);

#endif

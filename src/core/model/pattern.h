/* pattern.h - private to model/: name patterns such as "rack-{rack}-{n:02}".
 *
 * A pattern is text with placeholders in braces. A number may have a width: {n:04} is padded with zeros to
 * four digits. The allowed placeholders depend on what the pattern names:
 *     pods      {n} {pod}                              the pod's number in the cluster
 *     blocks    {pod} {podName} {n} {rack} {cube} {block}   the last four: the block's number in its pod
 *     machines  {pod} {podName} {rack} {cube} {block} {blockName} {n}
 * In a machine's name {n} counts the machines of the same pattern in the narrowest place that the pattern
 * names: the block with {rack}, {cube}, {block} or {blockName}; the pod with {pod} or {podName}; otherwise
 * the cluster. Names can repeat if a pattern has no {n}, or names a block without its pod: the loader reports
 * them.
 */
#ifndef PHX_CORE_MODEL_PATTERN_H
#define PHX_CORE_MODEL_PATTERN_H

#include "base/arena.h"

enum { PATTERN_PARTS_MAX = 12, PATTERN_WIDTH_MAX = 9 };
enum pattern_level { PATTERN_POD, PATTERN_BLOCK, PATTERN_MACHINE };
enum pattern_part_kind { PART_TEXT, PART_N, PART_POD, PART_BLOCK, PART_POD_NAME, PART_BLOCK_NAME };

struct pattern_part {
    enum pattern_part_kind kind;
    struct str text; /* PART_TEXT */
    int width;
};
struct pattern {
    struct str text;
    enum pattern_level level;
    struct pattern_part parts[PATTERN_PARTS_MAX];
    size_t part_count;
    bool in_pod, in_block; /* the place that {n} counts in */
    uint64_t counted_in;   /* the pod or block that `counted` belongs to */
    int64_t counted;
};
/* The place for which a name is made. Numbers of pods, of a pod's blocks, and {n} start at `number_from`. */
struct pattern_place {
    int64_t pod, block, number_from;
    struct str pod_name, block_name;
    uint64_t pod_index, block_index; /* numbers in the cluster, which identify the place */
};

/* Parses a pattern, which points into `text`. Returns false, with the reason in *ret_why, if it is
 * malformed. */
bool pattern_parse(struct str text, enum pattern_level level, struct pattern *ret_pattern,
                   const char **ret_why);
/* Returns the pattern's next name at this place, and advances {n}. */
struct str pattern_next(struct arena *arena, struct pattern *pattern, const struct pattern_place *place);

#endif

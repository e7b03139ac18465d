/* pattern.h - private to model/: name patterns such as "rack-{rack}-{n:02}".
 *
 * A pattern is text with placeholders in braces; ":04" after a placeholder that is a number pads it with
 * zeros to four digits. The allowed placeholders depend on what the pattern names:
 *     pods      {n} {pod}                              the pod's number in the cluster
 *     blocks    {pod} {podName} {n} {rack} {cube} {block}   the last four: the block's number in its pod
 *     machines  {pod} {podName} {rack} {cube} {block} {blockName} {n}
 * In a machine's name {n} counts the machines of this very pattern in the narrowest place that the pattern
 * names: in the block with {rack}, {cube}, {block} or {blockName}, in the pod with {pod} or {podName},
 * else in the cluster. So one pattern never makes a name twice, unless it has no {n} at all. (A
 * {blockName} without a pod counts in the block too: equal names of blocks in two pods then collide, and
 * are reported.)
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
/* The place for which a name is made. Numbers start from loader->number_from. */
struct pattern_place {
    int64_t pod, block, number_from;
    struct str pod_name, block_name;
    uint64_t pod_index, block_index; /* numbers in the cluster, which identify the place */
};

/* *ret_why names the broken rule. The pattern points into `text`. */
bool pattern_parse(struct str text, enum pattern_level level, struct pattern *ret_pattern,
                   const char **ret_why);
/* The next name of the pattern at this place; advances {n}. */
struct str pattern_next(struct arena *arena, struct pattern *pattern, const struct pattern_place *place);

#endif

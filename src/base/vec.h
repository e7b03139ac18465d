/* vec.h - growable arrays with their own type.
 *
 *     VEC(struct task *) tasks = {0};
 *     vec_push(&tasks, task);
 *     for (size_t i = 0; i < tasks.len; i++) use(tasks.items[i]);
 *     vec_done(&tasks);
 * Growth aborts on memory exhaustion. Items are plain bytes: a vec neither copies nor frees what they point
 * to.
 */
#ifndef PHX_BASE_VEC_H
#define PHX_BASE_VEC_H

#include "base/arena.h"
#include "base/check.h"

#define VEC(type)                                                                                            \
    struct {                                                                                                 \
        type *items;                                                                                         \
        size_t len, cap;                                                                                     \
    }

/* Private: grows `*items` (of `size` bytes each) to a capacity of at least `need`, which may move them. */
void vec_grow(void **items, size_t *cap, size_t need, size_t size);

#define vec_reserve(v, need)                                                                                 \
    ((need) <= (v)->cap ? (void)0 : vec_grow((void **)&(v)->items, &(v)->cap, (need), sizeof *(v)->items))
#define vec_push(v, item)    (vec_reserve((v), (v)->len + 1), (void)((v)->items[(v)->len++] = (item)))
#define vec_pop(v)           (CHECK((v)->len > 0), (v)->items[--(v)->len])
#define vec_last(v)          ((v)->items[(v)->len - 1])
/* Removes item `i`, keeping the order of the others. */
#define vec_remove(v, i)                                                                                     \
    (CHECK((i) < (v)->len),                                                                                  \
     memmove(&(v)->items[i], &(v)->items[(i) + 1], ((v)->len - 1 - (i)) * sizeof *(v)->items),               \
     (void)(v)->len--)
/* The first index i in [0, count) whose `key`, an expression of i that never falls, is not below `wanted`;
 * count if there is none.
 *     size_t at = sorted_place(list.len, i, list.items[i]->uid, uid);
 */
#define sorted_place(count, i, key, wanted)                                                                  \
    __extension__({                                                                                          \
        size_t low_ = 0, high_ = (count);                                                                    \
        while (low_ < high_) {                                                                               \
            size_t i = low_ + (high_ - low_) / 2;                                                            \
            if ((key) < (wanted))                                                                            \
                low_ = i + 1;                                                                                \
            else                                                                                             \
                high_ = i;                                                                                   \
        }                                                                                                    \
        low_;                                                                                                \
    })
#define vec_clear(v) ((void)((v)->len = 0))
#define vec_done(v)  (mem_free((v)->items), (v)->items = NULL, (v)->len = (v)->cap = 0)

#endif

#include "core/health/attribute.h"

#include "core/health/internal.h"

struct search {
    obj_id job;
    struct str machine;
    int64_t end_ns;
    const struct fault *worst[ATTRIBUTE_SUPPORT_MAX + 1];
    int64_t at_ns[ATTRIBUTE_SUPPORT_MAX + 1];
    size_t count, more;
};

/* The first occurrence within the window; INT64_MAX: none. */
static int64_t first_strike(const struct search *search, const struct fault *fault)
{
    for (uint32_t i = 0; i < fault->hit_count; i++) {
        const struct fault_hit *hit = &fault->hits[i];
        if (hit->job == search->job && hit->at_ns >= search->end_ns - ATTRIBUTE_BEFORE_NS &&
            hit->at_ns <= search->end_ns + ATTRIBUTE_AFTER_NS)
            return hit->at_ns;
    }
    return INT64_MAX;
}

static enum fault_domain domain_of(const struct fault *fault)
{
    return fault->software ? DOMAIN_SOFTWARE : fault->domain;
}

/* Somebody broke it on purpose, so shortly before the end that there is no doubt. */
static bool is_injected(const struct search *search, const struct fault *fault)
{
    bool shortly = false;
    for (uint32_t i = 0; i < fault->hit_count; i++)
        shortly |= fault->hits[i].job == search->job &&
                   fault->hits[i].at_ns >= search->end_ns - ATTRIBUTE_INJECTED_NS &&
                   fault->hits[i].at_ns <= search->end_ns;
    return shortly && str_starts(fault->code, STR("injected/"));
}

static bool goes_before(const struct search *search, const struct fault *a, int64_t a_ns,
                        const struct fault *b, int64_t b_ns)
{
    if (is_injected(search, a) != is_injected(search, b))
        return is_injected(search, a);
    bool a_there = str_equal(a->machine, search->machine), b_there = str_equal(b->machine, search->machine);
    if (a_there != b_there)
        return a_there;
    if (a->level != b->level)
        return a->level > b->level;
    if (domain_of(a) != domain_of(b))
        return domain_of(a) > domain_of(b); /* unknown, user, software, hardware */
    if (a_ns != b_ns)
        return a_ns < b_ns;
    return a->uid < b->uid;
}

static void consider(void *context, const struct fault *fault)
{
    struct search *search = context;
    int64_t at_ns = first_strike(search, fault);
    if (at_ns == INT64_MAX)
        return;
    size_t place = 0;
    while (place < search->count &&
           goes_before(search, search->worst[place], search->at_ns[place], fault, at_ns))
        place++;
    size_t room = ATTRIBUTE_SUPPORT_MAX + 1;
    search->more += search->count == room;
    search->count += search->count < room;
    for (size_t i = search->count; i-- > place + 1;) {
        search->worst[i] = search->worst[i - 1];
        search->at_ns[i] = search->at_ns[i - 1];
    }
    if (place < room) {
        search->worst[place] = fault;
        search->at_ns[place] = at_ns;
    }
}

/* --- clues ---------------------------------------------------------------------------------------------- */

/* The exception of "ValueError: text"; else all of the line is left out of the comparison. */
static struct str type_of(const struct end_clue *clue)
{
    struct str line = str_from(clue->line), head = line, rest;
    if (clue->kind != CLUE_TRACEBACK)
        return STR("");
    return str_cut(line, ':', &head, &rest) ? head : line;
}

/* Does `a` explain more than `b`? */
static bool is_heavier(const struct end_clue *a, const struct end_clue *b)
{
    enum clue_class a_class = clue_class_of(a->kind), b_class = clue_class_of(b->kind);
    if (a_class != b_class)
        return a_class > b_class;
    if (a->stopped != b->stopped)
        return b->stopped;
    if (clue_weight(a->kind) != clue_weight(b->kind))
        return clue_weight(a->kind) > clue_weight(b->kind);
    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns;
    return a->rank < b->rank;
}

static void join(struct end_clue *known, const struct end_clue *clue)
{
    known->tasks++;
    known->many |=
        strcmp(known->machine, clue->machine) != 0 && clue->at_ns - known->at_ns <= SOFTWARE_WINDOW_NS;
    if (!known->stopped || clue->stopped)
        return;
    uint32_t tasks = known->tasks; /* one that ended by itself says more */
    bool many = known->many;
    *known = *clue;
    known->tasks = tasks;
    known->many = many;
}

void end_clues_add(struct end_clues *clues, const struct end_clue *clue)
{
    CHECK(clue->kind > CLUE_NONE && clue->kind < CLUE_KINDS && clue->tasks == 1);
    struct end_clue *weakest = NULL;
    for (size_t i = 0; i < clues->count; i++) {
        struct end_clue *known = &clues->items[i];
        if (known->kind == clue->kind && str_equal(type_of(known), type_of(clue))) {
            join(known, clue);
            return;
        }
        if (!weakest || is_heavier(weakest, known))
            weakest = known;
    }
    if (clues->count < END_CLUES_MAX) {
        clues->items = mem_realloc(clues->items, (clues->count + 1) * sizeof(*clues->items));
        clues->items[clues->count++] = *clue;
    } else if (is_heavier(clue, weakest)) {
        *weakest = *clue;
    }
}

void end_clues_forget(struct end_clues *clues, int64_t before_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < clues->count; i++)
        if (clues->items[i].at_ns >= before_ns)
            clues->items[kept++] = clues->items[i];
    clues->count = kept;
}

void end_clues_done(struct end_clues *clues)
{
    mem_free(clues->items);
    *clues = (struct end_clues){0};
}

const struct end_clue *end_clues_root(const struct end_clues *clues)
{
    const struct end_clue *root = NULL;
    for (size_t i = 0; i < clues->count; i++)
        if (clue_class_of(clues->items[i].kind) == CLUE_IS_ROOT &&
            (!root || is_heavier(&clues->items[i], root)))
            root = &clues->items[i];
    return root;
}

/* --- both ----------------------------------------------------------------------------------------------- */

static bool fault_explains(const struct fault *fault, const struct end_clue *root)
{
    if (!fault || !root)
        return fault != NULL;
    if (str_is(fault->machine, root->machine))
        return fault->level > LEVEL_SUB_HEALTH;
    return fault->level >= LEVEL_RESET;
}

static void support_clues(struct attribution *ret, const struct end_clues *clues)
{
    for (size_t i = 0; i < clues->count; i++) {
        const struct end_clue *clue = &clues->items[i];
        if (clue == ret->clue)
            continue;
        size_t place = ret->clue_count++;
        while (place > 0 && is_heavier(clue, ret->clues[place - 1])) {
            ret->clues[place] = ret->clues[place - 1];
            place--;
        }
        ret->clues[place] = clue;
    }
}

void attribute(const struct health *health, obj_id job, struct str machine, int64_t end_ns,
               const struct end_clues *clues, struct attribution *ret)
{
    static const struct end_clues none;
    clues = clues ? clues : &none;
    const struct end_clue *root = end_clues_root(clues);
    bool placed = root && root->machine[0];
    struct search search = {
        .job = job, .machine = placed ? str_from(root->machine) : machine, .end_ns = end_ns};
    fault_visit(health, consider, &search);
    *ret = (struct attribution){.more = search.more};
    size_t first = 0;
    if (search.count && (is_injected(&search, search.worst[0]) || fault_explains(search.worst[0], root))) {
        ret->primary = search.worst[first++];
        ret->domain = domain_of(ret->primary);
    } else if (root) {
        ret->clue = root;
        ret->domain = clue_domain(root->kind);
        if (root->many && ret->domain == DOMAIN_HARDWARE)
            ret->domain = DOMAIN_SOFTWARE;
    }
    for (size_t i = first; i < search.count; i++) {
        if (ret->supporting_count < ATTRIBUTE_SUPPORT_MAX)
            ret->supporting[ret->supporting_count++] = search.worst[i];
        else
            ret->more++;
    }
    support_clues(ret, clues);
}

void attribution_cause(const struct attribution *found, struct buf *out)
{
    if (found->primary)
        buf_add_str(out, found->primary->code);
    else if (found->clue)
        buf_printf(out, "task/%s", clue_name(found->clue->kind));
    else
        buf_printf(out, "unattributed");
}

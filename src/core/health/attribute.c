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

static bool goes_before(const struct search *search, const struct fault *a, int64_t a_ns,
                        const struct fault *b, int64_t b_ns)
{
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

void attribute(const struct health *health, obj_id job, struct str machine, int64_t end_ns,
               struct attribution *ret)
{
    struct search search = {.job = job, .machine = machine, .end_ns = end_ns};
    fault_visit(health, consider, &search);
    *ret = (struct attribution){.more = search.more};
    if (search.count == 0)
        return;
    ret->primary = search.worst[0];
    ret->domain = domain_of(ret->primary);
    for (size_t i = 1; i < search.count; i++)
        ret->supporting[ret->supporting_count++] = search.worst[i];
}

#include "core/health/attribute.h"

#include "core/health/internal.h"

_Static_assert(END_FAULTS_MAX > ATTRIBUTE_SUPPORT_MAX + ATTRIBUTE_LATER_MAX, "what is not listed is counted");
_Static_assert(DOMAIN_USER < DOMAIN_SOFTWARE && DOMAIN_SOFTWARE < DOMAIN_NETWORK &&
                   DOMAIN_NETWORK < DOMAIN_HARDWARE,
               "the larger domain goes first");

/* --- faults --------------------------------------------------------------------------------------------- */

static void copy_text(char *to, size_t size, struct str from)
{
    CHECK(size > 0);
    struct str head = str_head_utf8(from, size - 1);
    CHECK(head.len < size);
    mem_copy(to, head.data, head.len);
    to[head.len] = 0;
}

void end_fault_of(const struct fault *fault, int64_t began_ns, int64_t now_ns, struct end_fault *ret)
{
    CHECK(fault->uid && fault->level < LEVELS); /* an order alone has no uid */
    *ret = (struct end_fault){.fault = fault->uid,
                              .level = fault->level,
                              .domain = fault->domain,
                              .software = fault->software,
                              .at_ns = began_ns,
                              .last_ns = now_ns};
    copy_text(ret->code, sizeof(ret->code), fault->code);
    copy_text(ret->machine, sizeof(ret->machine), fault->machine);
    copy_text(ret->user, sizeof(ret->user), fault->user);
    copy_text(ret->name, sizeof(ret->name), fault->name);
    copy_text(ret->evidence, sizeof(ret->evidence), buf_str(&fault->evidence));
}

void end_fault_ordered(const char *code, struct str machine, struct str user, struct str evidence,
                       int64_t now_ns, struct end_fault *ret)
{
    CHECK(*code);
    *ret = (struct end_fault){
        .level = LEVEL_NOT_HANDLE, .domain = DOMAIN_USER, .at_ns = now_ns, .last_ns = now_ns};
    copy_text(ret->code, sizeof(ret->code), str_from(code));
    copy_text(ret->machine, sizeof(ret->machine), machine);
    copy_text(ret->user, sizeof(ret->user), user);
    copy_text(ret->evidence, sizeof(ret->evidence), evidence);
}

bool end_fault_is_ordered(const struct end_fault *found)
{
    return found->fault == 0 || fault_is_on_purpose(str_from(found->code));
}

static enum fault_domain domain_of(const struct end_fault *found)
{
    return found->software && !end_fault_is_ordered(found) ? DOMAIN_SOFTWARE : found->domain;
}

static bool is_same(const struct end_fault *a, const struct end_fault *b)
{
    return a->fault == b->fault &&
           (a->fault || (str_is(str_from(a->code), b->code) && str_is(str_from(a->machine), b->machine)));
}

const struct end_fault *end_faults_find(const struct end_faults *faults, const struct end_fault *wanted)
{
    for (size_t i = 0; i < faults->count; i++)
        if (is_same(&faults->items[i], wanted))
            return &faults->items[i];
    return NULL;
}

/* Whether `a` is the weaker evidence, so that `b` may replace it. */
static bool is_weaker(const struct end_fault *a, const struct end_fault *b)
{
    if (end_fault_is_ordered(a) != end_fault_is_ordered(b))
        return end_fault_is_ordered(b);
    if (a->level != b->level)
        return a->level < b->level;
    return a->last_ns < b->last_ns;
}

/* Marks recent earlier faults of the same code as software if `found` is: a code on several chips at once is
 * caused by the program. */
static void share_software(struct end_faults *faults, const struct end_fault *found)
{
    for (size_t i = 0; found->software && i < faults->count; i++)
        faults->items[i].software |= str_is(str_from(found->code), faults->items[i].code) &&
                                     found->at_ns - faults->items[i].last_ns <= SOFTWARE_WINDOW_NS;
}

void end_faults_add(struct end_faults *faults, const struct end_fault *found)
{
    struct end_fault *place = (struct end_fault *)end_faults_find(faults, found);
    CHECK(faults->count <= END_FAULTS_MAX && found->level < LEVELS && found->domain < DOMAINS);
    share_software(faults, found);
    if (place) {
        int64_t at_ns = found->at_ns < place->at_ns ? found->at_ns : place->at_ns;
        *place = *found;
        place->at_ns = at_ns;
        return;
    }
    if (faults->count < END_FAULTS_MAX) {
        faults->items = mem_realloc(faults->items, (faults->count + 1) * sizeof(*faults->items));
        faults->items[faults->count++] = *found;
        return;
    }
    place = &faults->items[0];
    for (size_t i = 1; i < faults->count; i++)
        if (is_weaker(&faults->items[i], place))
            place = &faults->items[i];
    if (is_weaker(place, found))
        *place = *found;
}

void end_faults_forget(struct end_faults *faults, int64_t before_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < faults->count; i++)
        if (faults->items[i].last_ns >= before_ns || faults->items[i].fault == 0)
            faults->items[kept++] = faults->items[i];
    faults->count = kept;
}

void end_faults_done(struct end_faults *faults)
{
    mem_free(faults->items);
    *faults = (struct end_faults){0};
}

/* --- the worst of them ---------------------------------------------------------------------------------- */

struct search {
    struct str machine;
    int64_t end_ns;
    const struct end_fault *worst[END_FAULTS_MAX];
    size_t count;
};

/* Whether a deliberate act shortly before the end explains it beyond doubt. */
static bool explains_at_once(const struct search *search, const struct end_fault *found)
{
    return end_fault_is_ordered(found) && found->last_ns >= search->end_ns - ATTRIBUTE_ORDERED_NS;
}

static bool goes_before(const struct search *search, const struct end_fault *a, const struct end_fault *b)
{
    if (explains_at_once(search, a) != explains_at_once(search, b))
        return explains_at_once(search, a);
    bool a_there = str_is(search->machine, a->machine), b_there = str_is(search->machine, b->machine);
    if (a_there != b_there)
        return a_there;
    if (a->level != b->level)
        return a->level > b->level;
    if (domain_of(a) != domain_of(b))
        return domain_of(a) > domain_of(b); /* unknown, user, software, network, hardware */
    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns;
    return a->fault < b->fault;
}

static void consider(struct search *search, const struct end_fault *found)
{
    CHECK(search->count < END_FAULTS_MAX);
    size_t place = search->count++;
    for (; place > 0 && goes_before(search, found, search->worst[place - 1]); place--)
        search->worst[place] = search->worst[place - 1];
    search->worst[place] = found;
}

static void find_worst(struct search *search, const struct end_faults *faults, struct attribution *ret)
{
    CHECK(faults->count <= END_FAULTS_MAX);
    for (size_t i = 0; i < faults->count; i++) {
        const struct end_fault *found = &faults->items[i];
        if (found->at_ns <= search->end_ns && found->last_ns >= search->end_ns - ATTRIBUTE_BEFORE_NS)
            consider(search, found);
        else if (found->at_ns > search->end_ns && ret->later_count < ATTRIBUTE_LATER_MAX)
            ret->later[ret->later_count++] = found;
    }
    CHECK(search->count + ret->later_count <= faults->count);
}

/* --- signatures ---------------------------------------------------------------------------------------- */

/* Returns the type of an exception ("ValueError" of "ValueError: text"). Returns an empty string for other
 * signatures, so that their lines are not compared. */
static struct str type_of(const struct end_signature *signature)
{
    struct str line = str_from(signature->line), head = line, rest;
    if (signature->kind != SIGNATURE_TRACEBACK)
        return STR("");
    return str_cut(line, ':', &head, &rest) ? head : line;
}

/* Whether `a` explains more than `b`. */
static bool is_heavier(const struct end_signature *a, const struct end_signature *b)
{
    enum signature_class a_class = signature_class_of(a->kind), b_class = signature_class_of(b->kind);
    if (a_class != b_class)
        return a_class > b_class;
    if (a->stopped != b->stopped)
        return b->stopped;
    if (signature_weight(a->kind) != signature_weight(b->kind))
        return signature_weight(a->kind) > signature_weight(b->kind);
    if (a->at_ns != b->at_ns)
        return a->at_ns < b->at_ns;
    return a->rank < b->rank;
}

/* Whether the signature's rank was the first whose loss was not finite: the one with the lowest step. */
static bool was_first(const struct end_signature *signature, const struct end_signature *known)
{
    return signature->kind == SIGNATURE_NUMERIC &&
           signature_numeric_step(str_from(signature->line)) < signature_numeric_step(str_from(known->line));
}

static void join(struct end_signature *known, const struct end_signature *signature)
{
    CHECK(known->kind == signature->kind && known->tasks > 0);
    known->tasks++;
    known->many |= strcmp(known->machine, signature->machine) != 0 &&
                   signature->at_ns - known->at_ns <= SOFTWARE_WINDOW_NS;
    if (!was_first(signature, known) && (!known->stopped || signature->stopped))
        return;
    uint32_t tasks = known->tasks; /* a task that ended by itself is better evidence than a stopped one */
    bool many = known->many;
    *known = *signature;
    known->tasks = tasks;
    known->many = many;
}

void end_signatures_add(struct end_signatures *signatures, const struct end_signature *signature)
{
    CHECK(signature->kind > SIGNATURE_NONE && signature->kind < SIGNATURE_KINDS && signature->tasks == 1);
    struct end_signature *weakest = NULL;
    CHECK(signatures->count <= END_SIGNATURES_MAX);
    for (size_t i = 0; i < signatures->count; i++) {
        struct end_signature *known = &signatures->items[i];
        if (known->kind == signature->kind && str_equal(type_of(known), type_of(signature))) {
            join(known, signature);
            return;
        }
        if (!weakest || is_heavier(weakest, known))
            weakest = known;
    }
    if (signatures->count < END_SIGNATURES_MAX) {
        signatures->items =
            mem_realloc(signatures->items, (signatures->count + 1) * sizeof(*signatures->items));
        signatures->items[signatures->count++] = *signature;
    } else if (is_heavier(signature, weakest)) {
        *weakest = *signature;
    }
}

void end_signatures_forget(struct end_signatures *signatures, int64_t before_ns)
{
    size_t kept = 0;
    for (size_t i = 0; i < signatures->count; i++)
        if (signatures->items[i].at_ns >= before_ns)
            signatures->items[kept++] = signatures->items[i];
    signatures->count = kept;
}

void end_signatures_done(struct end_signatures *signatures)
{
    mem_free(signatures->items);
    *signatures = (struct end_signatures){0};
}

const struct end_signature *end_signatures_root(const struct end_signatures *signatures)
{
    const struct end_signature *root = NULL;
    for (size_t i = 0; i < signatures->count; i++)
        if (signature_class_of(signatures->items[i].kind) == SIGNATURE_IS_ROOT &&
            (!root || is_heavier(&signatures->items[i], root)))
            root = &signatures->items[i];
    return root;
}

/* --- both ----------------------------------------------------------------------------------------------- */

static bool fault_explains(const struct end_fault *found, const struct end_signature *root)
{
    if (!root)
        return true;
    if (strcmp(found->machine, root->machine) == 0)
        return found->level > LEVEL_SUB_HEALTH;
    return found->level >= LEVEL_RESET;
}

static void support_signatures(struct attribution *ret, const struct end_signatures *signatures)
{
    CHECK(signatures->count <= END_SIGNATURES_MAX);
    for (size_t i = 0; i < signatures->count; i++) {
        const struct end_signature *signature = &signatures->items[i];
        if (signature == ret->signature)
            continue;
        size_t place = ret->signature_count++;
        while (place > 0 && is_heavier(signature, ret->signatures[place - 1])) {
            ret->signatures[place] = ret->signatures[place - 1];
            place--;
        }
        ret->signatures[place] = signature;
    }
    CHECK(ret->signature_count + (ret->signature != NULL) == signatures->count);
}

void attribute(const struct end_faults *faults, const struct end_signatures *signatures, struct str machine,
               int64_t end_ns, struct attribution *ret)
{
    static const struct end_signatures no_signatures;
    static const struct end_faults no_faults;
    signatures = signatures ? signatures : &no_signatures;
    const struct end_signature *root = end_signatures_root(signatures);
    bool placed = root && root->machine[0];
    struct search search = {.machine = placed ? str_from(root->machine) : machine, .end_ns = end_ns};
    *ret = (struct attribution){0};
    find_worst(&search, faults ? faults : &no_faults, ret);
    size_t first = 0;
    const struct end_fault *worst = search.count ? search.worst[0] : NULL;
    if (worst && (explains_at_once(&search, worst) || fault_explains(worst, root))) {
        ret->primary = search.worst[first++];
        ret->domain = domain_of(ret->primary);
    } else if (root) {
        ret->signature = root;
        ret->domain = signature_domain(root->kind);
        if (root->many && ret->domain == DOMAIN_HARDWARE)
            ret->domain = DOMAIN_SOFTWARE;
    }
    for (size_t i = first; i < search.count; i++) {
        if (ret->supporting_count < ATTRIBUTE_SUPPORT_MAX)
            ret->supporting[ret->supporting_count++] = search.worst[i];
        else
            ret->more++;
    }
    CHECK(!ret->primary || !ret->signature);
    CHECK(first + ret->supporting_count + ret->more == search.count);
    support_signatures(ret, signatures);
}

void attribution_cause(const struct attribution *found, struct buf *out)
{
    if (found->primary)
        buf_printf(out, "%s", found->primary->code);
    else if (found->signature)
        signature_cause(found->signature->kind, out);
    else
        buf_printf(out, "unattributed");
}

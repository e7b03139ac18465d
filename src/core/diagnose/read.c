/* read.c - reads the dump of one rank into the flight. The whole dump is read first, so that a refused
 * dump changes nothing but the groups. */
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "core/diagnose/flight.h"

/* Members of an entry. A dump writes them in one order, so the search for a member begins at its index in the
 * previous entry. */
enum field {
    FIELD_RECORD,
    FIELD_PG_ID,
    FIELD_GROUP,
    FIELD_SEQ,
    FIELD_P2P_SEQ,
    FIELD_NAME,
    FIELD_CREATED,
    FIELD_INPUT,
    FIELD_OUTPUT,
    FIELD_INPUT_TYPES,
    FIELD_OUTPUT_TYPES,
    FIELD_STATE,
    FIELD_STARTED,
    FIELD_COMPLETED,
    FIELD_P2P,
    FIELDS
};
static const char *const field_names[FIELDS] = {
    "record_id",
    "pg_id",
    "process_group",
    "collective_seq_id",
    "p2p_seq_id",
    "profiling_name",
    "time_created_ns",
    "input_sizes",
    "output_sizes",
    "input_dtypes",
    "output_dtypes",
    "state",
    "time_discovered_started_ns",
    "time_discovered_completed_ns",
    "is_p2p",
};

_Static_assert(FIELDS == 15, "each field has a name");

/* A group as this dump names it. */
struct local_group {
    struct group *group;
    struct seat *seat;
    int64_t id; /* pg_id, the key of pg_status; NUMBER_NONE: not known */
};

struct reading {
    struct flight *flight;
    uint32_t rank;
    struct error *error;
    struct error odd; /* the first field that was ignored */
    size_t odd_count;
    size_t index;          /* index of the present entry */
    size_t places[FIELDS]; /* index of each field in the previous entry */
    struct str names[FIELDS];
    VEC(struct local_group) groups;
    VEC(struct op) ops;
    struct buf text; /* scratch space for terms */
};

/* --- fields --------------------------------------------------------------------------------------- */

/* Ignores a field of an unexpected form, and records the first of them for the caller. The rest of the dump
 * is still read. */
static void pass_over(struct reading *reading, enum field field, const struct doc *value, const char *wanted)
{
    CHECK(field < FIELDS);
    if (reading->odd_count++ == 0)
        error_set(&reading->odd, ERROR_INVALID,
                  "rank %u: entries[%zu].%s: a value of type %s where %s is expected", reading->rank,
                  reading->index, field_names[field], doc_kind_name(value->kind), wanted);
}

/* Returns the field's value, or NULL if it is absent or null. */
static const struct doc *find(struct reading *reading, const struct doc *entry, enum field field)
{
    CHECK(field < FIELDS && entry->kind == DOC_OBJECT);
    const struct doc_member *members = entry->object.members;
    size_t len = entry->object.len, place = reading->places[field];
    struct str name = reading->names[field];
    if (place >= len || !str_equal(members[place].key, name))
        for (place = 0; place < len && !str_equal(members[place].key, name); place++)
            ;
    if (place == len)
        return NULL;
    reading->places[field] = place;
    return members[place].value->kind == DOC_NULL ? NULL : members[place].value;
}

/* Reads an integer, or a string of digits, which the JSON form of dumps uses. */
static bool number_of(const struct doc *value, int64_t *ret_number)
{
    if (value->kind == DOC_INT)
        *ret_number = value->integer;
    else if (value->kind != DOC_STRING || !str_to_i64(value->text, INT64_MIN + 1, INT64_MAX, ret_number))
        return false;
    return true;
}

static void get_number(struct reading *reading, const struct doc *entry, enum field field, int64_t *number)
{
    const struct doc *value = find(reading, entry, field);
    if (value && !number_of(value, number))
        pass_over(reading, field, value, "an integer");
}

static void get_text(struct reading *reading, const struct doc *entry, enum field field, struct str *text)
{
    const struct doc *value = find(reading, entry, field);
    if (value && value->kind != DOC_STRING)
        pass_over(reading, field, value, "a string");
    else
        *text = value ? value->text : *text;
}

/* Adds the number of elements of one tensor, the product of its dimensions, and appends its dimensions.
 * Saturates. */
static bool add_size(struct buf *out, const struct doc *size, int64_t *elements)
{
    CHECK(*elements >= 0);
    int64_t product = 1;
    if (size->kind != DOC_ARRAY)
        return false;
    buf_add_char(out, '[');
    for (size_t i = 0; i < size->array.len; i++) {
        const struct doc *extent = size->array.items[i];
        if (extent->kind != DOC_INT || extent->integer < 0)
            return false;
        if (__builtin_mul_overflow(product, extent->integer, &product))
            product = INT64_MAX;
        buf_printf(out, i ? ", %lld" : "%lld", (long long)extent->integer);
    }
    buf_add_char(out, ']');
    if (__builtin_add_overflow(*elements, product, elements))
        *elements = INT64_MAX;
    return true;
}

static void get_sizes(struct reading *reading, const struct doc *entry, enum field field,
                      const struct term **ret_term)
{
    const struct doc *value = find(reading, entry, field);
    int64_t elements = 0;
    *ret_term = NULL;
    if (!value)
        return;
    buf_clear(&reading->text);
    bool good = value->kind == DOC_ARRAY;
    for (size_t i = 0; good && i < value->array.len; i++) {
        if (i)
            buf_add(&reading->text, ", ", 2);
        good = add_size(&reading->text, value->array.items[i], &elements);
    }
    if (good)
        *ret_term = flight_term(reading->flight, buf_str(&reading->text), elements);
    else
        pass_over(reading, field, value, "a list of lists of sizes");
}

/* Reads a list of strings; a single string counts as a list of one. */
static void get_types(struct reading *reading, const struct doc *entry, enum field field,
                      const struct term **ret_term)
{
    const struct doc *value = find(reading, entry, field);
    *ret_term = NULL;
    if (!value)
        return;
    buf_clear(&reading->text);
    bool good = value->kind == DOC_ARRAY || value->kind == DOC_STRING;
    if (value->kind == DOC_STRING)
        buf_add_str(&reading->text, value->text);
    for (size_t i = 0; good && value->kind == DOC_ARRAY && i < value->array.len; i++) {
        good = value->array.items[i]->kind == DOC_STRING;
        if (i)
            buf_add(&reading->text, ", ", 2);
        buf_add_str(&reading->text, doc_str(value->array.items[i], STR("")));
    }
    if (good)
        *ret_term = flight_term(reading->flight, buf_str(&reading->text), 0);
    else
        pass_over(reading, field, value, "a list of strings");
}

/* --- groups --------------------------------------------------------------------------------------- */

static struct local_group *local_group(struct reading *reading, struct str name)
{
    for (size_t i = 0; i < reading->groups.len; i++)
        if (str_equal(reading->groups.items[i].group->name, name))
            return &reading->groups.items[i];
    return NULL;
}

static int add_group(struct reading *reading, struct str name, struct str desc, struct str ranks)
{
    struct error why = {0};
    struct group *group;
    int code = flight_group(reading->flight, name, desc, ranks, &group, &why);
    if (code == ERROR_INVALID && ranks.len) { /* the group's members stay unknown */
        if (reading->odd_count++ == 0)
            error_set(&reading->odd, code, "rank %u: pg_config." STR_FORMAT ".ranks: %s", reading->rank,
                      STR_ARG(name), why.text);
        code = flight_group(reading->flight, name, desc, STR(""), &group, &why);
    }
    if (code < 0)
        return error_set(reading->error, code, "rank %u: pg_config." STR_FORMAT ".ranks: %s", reading->rank,
                         STR_ARG(name), why.text);
    struct seat *seat = flight_seat(reading->flight, group, reading->rank);
    if (!seat)
        return error_set(reading->error, ERROR_INVALID,
                         "rank %u: pg_config." STR_FORMAT ".ranks: the rank itself is not among them",
                         reading->rank, STR_ARG(name));
    CHECK(seat->lane == &group->lane && seat->rank == reading->rank);
    struct local_group local = {group, seat, NUMBER_NONE};
    vec_push(&reading->groups, local);
    return 0;
}

/* Reads a list of ranks: a string in present dumps, or a list of integers. */
static void ranks_text(struct reading *reading, struct str name, const struct doc *value,
                       struct str *ret_text)
{
    buf_clear(&reading->text);
    *ret_text = STR("");
    if (!value || value->kind == DOC_NULL)
        return;
    if (value->kind == DOC_STRING) {
        *ret_text = value->text;
        return;
    }
    bool good = value->kind == DOC_ARRAY;
    for (size_t i = 0; good && i < value->array.len; i++) {
        good = value->array.items[i]->kind == DOC_INT;
        if (good)
            buf_printf(&reading->text, i ? ", %lld" : "[%lld", (long long)value->array.items[i]->integer);
    }
    buf_add_char(&reading->text, ']');
    if (good)
        *ret_text = buf_str(&reading->text);
    else if (reading->odd_count++ == 0)
        error_set(&reading->odd, ERROR_INVALID, "rank %u: pg_config." STR_FORMAT ".ranks: a list is expected",
                  reading->rank, STR_ARG(name));
}

static int read_groups(struct reading *reading, const struct doc *config)
{
    if (!config || config->kind == DOC_NULL)
        return 0;
    if (config->kind != DOC_OBJECT)
        return error_set(reading->error, ERROR_INVALID,
                         "rank %u: pg_config: a value of type %s where an object is expected", reading->rank,
                         doc_kind_name(config->kind));
    for (size_t i = 0; i < config->object.len; i++) {
        const struct doc_member *member = &config->object.members[i];
        struct str ranks, name = doc_str(doc_get(member->value, "name"), member->key);
        int code = 0;
        ranks_text(reading, name, doc_get(member->value, "ranks"), &ranks);
        if (!local_group(reading, name))
            code = add_group(reading, name, doc_str(doc_get(member->value, "desc"), STR("")), ranks);
        if (code < 0)
            return code;
    }
    return 0;
}

/* --- entries -------------------------------------------------------------------------------------- */

/* Finds the group of an entry by its name and description, or by pg_id alone in an old dump. *ret_local stays
 * NULL if neither can be read. */
static int entry_group(struct reading *reading, const struct doc *entry, struct local_group **ret_local)
{
    char digits[24];
    int64_t id = NUMBER_NONE;
    get_number(reading, entry, FIELD_PG_ID, &id);
    const struct doc *pair = find(reading, entry, FIELD_GROUP), *first = doc_at(pair, 0);
    struct str name = doc_str(pair, doc_str(first, STR("")));
    if (pair && !name.len) {
        pass_over(reading, FIELD_GROUP, pair, "a pair of name and description");
        if (id == NUMBER_NONE)
            return 0;
        pair = NULL;
    }
    if (!pair && id != NUMBER_NONE)
        name = (struct str){digits, (size_t)snprintf(digits, sizeof digits, "%lld", (long long)id)};
    struct local_group *local = local_group(reading, name);
    if (!local) {
        int code = add_group(reading, name, doc_str(doc_at(pair, 1), STR("")), STR(""));
        if (code < 0)
            return code;
        local = &vec_last(&reading->groups);
    }
    if (local->id == NUMBER_NONE)
        local->id = id;
    *ret_local = local;
    return 0;
}

static uint32_t global_rank(const struct group *group, int64_t local)
{
    CHECK(local >= 0);
    if (group->members)
        return local < (int64_t)group->member_count ? group->members[local] : RANK_NONE;
    return local < FLIGHT_RANKS_MAX ? (uint32_t)local : RANK_NONE;
}

/* Reads the ends of "send 0->1" or "recv 1<-0", which are ranks in the group. Other calls have no ends. */
static void read_ends(struct op *op, struct str call)
{
    struct str left, right, rest = {0};
    bool send = str_starts(call, STR("send ")), receive = str_starts(call, STR("recv "));
    int64_t from, to;
    op->source = op->target = RANK_NONE;
    if (!send && !receive)
        return;
    rest = (struct str){call.data + 5, call.len - 5};
    if (!str_cut(rest, send ? '-' : '<', &left, &right) || right.len < 2)
        return;
    right = str_trim((struct str){right.data + 1, right.len - 1});
    if (!str_to_i64(str_trim(left), 0, FLIGHT_RANKS_MAX, &from) ||
        !str_to_i64(right, 0, FLIGHT_RANKS_MAX, &to))
        return;
    op->source = global_rank(op->group, send ? from : to);
    op->target = global_rank(op->group, send ? to : from);
}

static void read_state(struct reading *reading, const struct doc *entry, struct op *op)
{
    struct str state = STR("scheduled");
    int64_t started = 0, completed = 0;
    get_text(reading, entry, FIELD_STATE, &state);
    get_number(reading, entry, FIELD_STARTED, &started);
    get_number(reading, entry, FIELD_COMPLETED, &completed);
    bool known = str_is(state, "scheduled") || str_is(state, "started") || str_is(state, "completed");
    if (!known && reading->odd_count++ == 0)
        error_set(&reading->odd, ERROR_INVALID,
                  "rank %u: entries[%zu].state: \"" STR_FORMAT "\" is not scheduled, started or completed",
                  reading->rank, reading->index, (int)(state.len < 64 ? state.len : 64), state.data);
    op->state = str_is(state, "completed") || completed > 0 ? OP_COMPLETED
                : str_is(state, "started") || started > 0   ? OP_STARTED
                                                            : OP_SCHEDULED;
}

static int read_op(struct reading *reading, const struct doc *entry, struct op *op)
{
    struct local_group *local = NULL;
    struct str name = STR("");
    int64_t seq = NUMBER_NONE, p2p_seq = NUMBER_NONE;
    const struct doc *p2p = find(reading, entry, FIELD_P2P);
    op->record_id = (int64_t)reading->index;
    op->seq = NUMBER_NONE;
    int code = entry_group(reading, entry, &local);
    if (code < 0 || !local)
        return code;
    get_number(reading, entry, FIELD_RECORD, &op->record_id);
    get_number(reading, entry, FIELD_SEQ, &seq);
    get_number(reading, entry, FIELD_P2P_SEQ, &p2p_seq);
    get_number(reading, entry, FIELD_CREATED, &op->created_ns);
    get_text(reading, entry, FIELD_NAME, &name);
    get_sizes(reading, entry, FIELD_INPUT, &op->input);
    get_sizes(reading, entry, FIELD_OUTPUT, &op->output);
    get_types(reading, entry, FIELD_INPUT_TYPES, &op->input_type);
    get_types(reading, entry, FIELD_OUTPUT_TYPES, &op->output_type);
    read_state(reading, entry, op);
    if (p2p && p2p->kind != DOC_BOOL) {
        pass_over(reading, FIELD_P2P, p2p, "a boolean");
        p2p = NULL;
    }
    struct str backend, call;
    call = str_cut(name, ':', &backend, &call) ? call : name;
    op->group = local->group;
    op->seat = local->seat;
    op->p2p = doc_bool(p2p, str_starts(call, STR("send ")) || str_starts(call, STR("recv ")));
    read_ends(op, call);
    CHECK(op->source == RANK_NONE || call.len > 4);
    CHECK(op->seat->rank == reading->rank && op->seat->lane == &op->group->lane);
    op->name = flight_term(reading->flight, op->source == RANK_NONE ? call : (struct str){call.data, 4}, 0);
    if (number_checked(op->record_id) == NUMBER_NONE)
        op->record_id = (int64_t)reading->index;
    seq = number_checked(seq);
    p2p_seq = number_checked(p2p_seq);
    op->seq = op->p2p ? p2p_seq : seq;
    op->other_seq = op->p2p ? seq : p2p_seq;
    return 0;
}

/* Gives the state of a coalesced call to its parts. Such a call writes an entry for each part, whose state
 * never changes, and one for the whole. Returns whether the parts were found, so that the entry of the whole
 * can be dropped. */
static bool close_batch(struct reading *reading, const struct op *whole)
{
    bool any = false;
    uint32_t batch = ++reading->flight->batches;
    for (size_t i = reading->ops.len; i-- > 0;) {
        struct op *part = &reading->ops.items[i];
        if (part->group != whole->group || part->p2p != whole->p2p || part->batch ||
            part->state == OP_COMPLETED ||
            part->record_id != whole->record_id - (int64_t)(reading->ops.len - i))
            break;
        if (!whole->p2p && part->seq != whole->seq)
            break;
        part->state = whole->state;
        part->batch = batch;
        any = true;
    }
    return any;
}

static int compare_ops(const void *a, const void *b)
{
    const struct op *x = a, *y = b;
    if (x->record_id != y->record_id)
        return x->record_id < y->record_id ? -1 : 1;
    return 0;
}

static int read_entries(struct reading *reading, const struct doc *entries)
{
    if (!entries || entries->kind == DOC_NULL)
        return 0;
    if (entries->kind != DOC_ARRAY)
        return error_set(reading->error, ERROR_INVALID,
                         "rank %u: entries: a value of type %s where a list is expected", reading->rank,
                         doc_kind_name(entries->kind));
    if (entries->array.len > FLIGHT_ENTRIES_MAX)
        return error_set(reading->error, ERROR_LIMIT, "rank %u: entries: more than %d", reading->rank,
                         FLIGHT_ENTRIES_MAX);
    for (size_t i = 0; i < entries->array.len; i++) {
        const struct doc *entry = entries->array.items[i];
        struct op op = {0};
        reading->index = i;
        if (entry->kind != DOC_OBJECT) {
            if (reading->odd_count++ == 0)
                error_set(&reading->odd, ERROR_INVALID,
                          "rank %u: entries[%zu]: a value of type %s where an object is expected",
                          reading->rank, i, doc_kind_name(entry->kind));
            continue;
        }
        int code = read_op(reading, entry, &op);
        if (code < 0)
            return code;
        if (op.seq == NUMBER_NONE) /* without a number the operation has no place in the order */
            continue;
        if (!str_is(op.name->text, "coalesced") || !close_batch(reading, &op))
            vec_push(&reading->ops, op);
    }
    CHECK(reading->ops.len <= entries->array.len);
    if (reading->ops.len == 0 && reading->odd_count > 0) /* no operation of the dump can be read */
        return error_set(reading->error, ERROR_INVALID, "%s", reading->odd.text);
    return 0;
}

/* --- the whole ------------------------------------------------------------------------------------ */

static int compare_numbers(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Matches the process-local ids of pg_status with group names. Entries give both only for groups in use. Ids
 * and names both count up as groups are made, so if there are as many ids as names and the known pairs agree,
 * the other pairs follow. */
static void match_ids(struct reading *reading, const struct doc *status)
{
    VEC(int64_t) ids = {0}, names = {0};
    bool match = doc_len(status) == reading->groups.len;
    for (size_t i = 0; match && i < reading->groups.len; i++) {
        int64_t id, name;
        match = str_to_i64(status->object.members[i].key, 0, INT32_MAX, &id) &&
                str_to_i64(reading->groups.items[i].group->name, 0, INT32_MAX, &name);
        if (match) {
            vec_push(&ids, id);
            vec_push(&names, name);
        }
    }
    CHECK(ids.len == names.len && (!match || ids.len == reading->groups.len));
    if (match && ids.len) {
        qsort(ids.items, ids.len, sizeof *ids.items, compare_numbers);
        qsort(names.items, names.len, sizeof *names.items, compare_numbers);
    }
    for (int round = 0; match && round < 2; round++) {
        for (size_t i = 0; match && i < reading->groups.len; i++) {
            struct local_group *local = &reading->groups.items[i];
            int64_t name = 0;
            CHECK(str_to_i64(local->group->name, 0, INT32_MAX, &name));
            const int64_t *at = bsearch(&name, names.items, names.len, sizeof *names.items, compare_numbers);
            CHECK(at);
            int64_t id = ids.items[at - names.items];
            match = local->id == NUMBER_NONE || local->id == id;
            if (match && round == 1)
                local->id = id;
        }
    }
    vec_done(&ids);
    vec_done(&names);
}

static void take_status(struct reading *reading, const struct doc *status)
{
    if (!status || status->kind != DOC_OBJECT)
        return;
    match_ids(reading, status);
    for (size_t i = 0; i < reading->groups.len; i++) {
        char key[24];
        struct local_group *local = &reading->groups.items[i];
        snprintf(key, sizeof key, "%lld", (long long)local->id);
        const struct doc *numbers = doc_get(status, key);
        const struct doc *enqueued = doc_get(numbers, "last_enqueued_collective");
        const struct doc *completed = doc_get(numbers, "last_completed_collective");
        int64_t number;
        if (enqueued && number_of(enqueued, &number))
            local->seat->status_enqueued = number < 0 ? 0 : number_checked(number);
        if (completed && number_of(completed, &number))
            local->seat->status_completed = number < 0 ? 0 : number_checked(number);
    }
}

/* Records the numbers of an operation. Every entry has the counts of both kinds; the count of the other kind
 * is a lower bound of the rank's progress. */
static void take_numbers(const struct op *op)
{
    int64_t collective = op->p2p ? op->other_seq : op->seq, p2p = op->p2p ? op->seq : op->other_seq;
    struct group *group = op->group;
    struct seat *seat = op->seat;
    group->seq_max = collective > group->seq_max ? collective : group->seq_max;
    group->p2p_max = p2p > group->p2p_max ? p2p : group->p2p_max;
    if ((!op->p2p || collective > 0) && collective > seat->enqueued)
        seat->enqueued = collective;
    if (!op->p2p && op->state == OP_COMPLETED && op->seq > seat->completed)
        seat->completed = op->seq;
    CHECK(seat->completed <= seat->enqueued);
}

/* Books the numbers of finished operations on their seats, and keeps the newest of the operations
 * themselves. */
static void take_ops(struct reading *reading)
{
    struct rank_record *record = flight_rank(reading->flight, reading->rank);
    size_t finished = 0, kept = 0;
    bool sorted = true;
    CHECK(!record->dumped);
    reading->flight->operations += reading->ops.len;
    for (size_t i = 0; i < reading->ops.len; i++) {
        const struct op *op = &reading->ops.items[i];
        finished += op->state == OP_COMPLETED;
        sorted = sorted && (i == 0 || reading->ops.items[i - 1].record_id <= op->record_id);
        take_numbers(op);
    }
    if (!sorted)
        qsort(reading->ops.items, reading->ops.len, sizeof *reading->ops.items, compare_ops);
    for (size_t i = 0; i < reading->ops.len; i++) {
        bool old = reading->ops.items[i].state == OP_COMPLETED && finished-- > FLIGHT_FINISHED_MAX;
        if (!old)
            reading->ops.items[kept++] = reading->ops.items[i];
    }
    CHECK(finished == 0 && kept <= reading->ops.len); /* each finished operation was counted down */
    vec_done(&record->ops);
    record->ops.items = mem_alloc((kept + 1) * sizeof(struct op));
    record->ops.len = record->ops.cap = kept;
    mem_copy(record->ops.items, reading->ops.items, kept * sizeof(struct op));
    record->dumped = record->mentioned = true;
}

int flight_add_dump(struct flight *flight, uint32_t rank, const struct doc *dump, struct error *error)
{
    struct reading reading = {.flight = flight, .rank = rank, .error = error};
    if (rank >= FLIGHT_RANKS_MAX)
        return error_set(error, ERROR_LIMIT, "rank %u: ranks end at %d", rank, FLIGHT_RANKS_MAX - 1);
    if (flight_rank(flight, rank)->dumped)
        return error_set(error, ERROR_EXISTS, "rank %u: there is a dump of this rank already", rank);
    if (dump->kind != DOC_OBJECT)
        return error_set(error, ERROR_INVALID, "rank %u: a value of type %s where an object is expected",
                         rank, doc_kind_name(dump->kind));
    for (int i = 0; i < FIELDS; i++) {
        reading.places[i] = (size_t)i;
        reading.names[i] = str_from(field_names[i]);
    }
    int code = read_groups(&reading, doc_get(dump, "pg_config"));
    if (code == 0)
        code = read_entries(&reading, doc_get(dump, "entries"));
    if (code == 0) {
        take_status(&reading, doc_get(dump, "pg_status"));
        take_ops(&reading);
    }
    if (code == 0 && reading.odd_count > 0)
        error_set(error, ERROR_INVALID, "%s%s", reading.odd.text,
                  reading.odd_count > 1 ? ", and other fields" : "");
    vec_done(&reading.groups);
    vec_done(&reading.ops);
    buf_done(&reading.text);
    return code;
}

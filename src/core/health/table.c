/* table.c - the default rules, overridden by the document of a FaultTable. */
#include "core/health/table.h"

#include "base/map.h"
#include "base/units.h"
#include "base/vec.h"
#include "core/health/table_default.h"

const char *const fault_level_names[LEVELS] = {"NotHandle",       "SubHealth",   "RestartRequest",
                                               "RestartBusiness", "PreSeparate", "FreeReset",
                                               "Reset",           "Separate",    "ManuallySeparate"};
const char *const fault_domain_names[DOMAINS] = {"unknown", "user", "software", "network", "hardware"};
_Static_assert(LEVELS == 9 && DOMAINS == 5, "each level and each domain has a name");
_Static_assert(NS_PER_SECOND / FAULT_PUBLIC_MAX > 0, "the limit on reports of a sender has a step");

struct fault_table {
    struct arena arena;
    struct str_map rules; /* code -> struct fault_rule */
    struct fault_rule unknown[SEVERITY_CRITICAL + 1];
    struct str_map unrated; /* code -> its rules by severity, as `unknown`, with a frequency or a duration */
    VEC(struct fault_relation) relations;
    struct fault_breaker breaker;
    struct fault_public public;
};

static struct fault_rule *add_rule(struct fault_table *table, struct str code)
{
    struct fault_rule *rule = str_map_get(&table->rules, code);
    if (rule)
        return rule;
    rule = ARENA_NEW(&table->arena, struct fault_rule);
    rule->code = arena_str(&table->arena, code);
    str_map_put(&table->rules, rule->code, rule);
    return rule;
}

static void add_defaults(struct fault_table *table)
{
    for (size_t i = 0; i < fault_default_rule_count; i++) {
        struct fault_rule *rule = add_rule(table, fault_default_rules[i].code);
        struct str code = rule->code;
        CHECK(table->rules.len == i + 1); /* each row has another code */
        *rule = fault_default_rules[i];
        CHECK(rule->level < LEVELS && rule->domain < DOMAINS && rule->times <= FAULT_TIMES_MAX);
        CHECK(!rule->times == !rule->window_ns && rule->frequent < LEVELS && rule->lasting < LEVELS);
        rule->code = code;
    }
    for (size_t i = 0; i < fault_default_relation_count; i++) {
        const struct fault_relation *row = &fault_default_relations[i];
        CHECK(row->first.len == strlen(row->first.data) && row->then.len == strlen(row->then.data));
        CHECK(row->within_ns > 0 && row->level < LEVELS);
        vec_push(&table->relations, *row);
    }
    static const enum fault_level unknown[] = {[SEVERITY_NOTICE] = LEVEL_NOT_HANDLE,
                                               [SEVERITY_MINOR] = LEVEL_NOT_HANDLE,
                                               [SEVERITY_MAJOR] = LEVEL_PRE_SEPARATE,
                                               [SEVERITY_CRITICAL] = LEVEL_SEPARATE};
    _Static_assert(sizeof unknown / sizeof *unknown == SEVERITY_CRITICAL + 1, "a level for each severity");
    for (int severity = SEVERITY_NOTICE; severity <= SEVERITY_CRITICAL; severity++)
        table->unknown[severity].level = unknown[severity];
    table->unknown[SEVERITY_CRITICAL].high = true;
    table->breaker = (struct fault_breaker){.hour_percent = 10, .total_percent = 50};
    /* Part of FAULTS_MAX is always left to agents. */
    table->public =
        (struct fault_public){.per_second = 100, .burst = 1000, .per_sender = 10000, .total = 40000};
}

/* --- a document ----------------------------------------------------------------------------------------- */

/* Returns the index of the text in a list of names, or `fallback` if the text is absent (the schema refuses
 * others). */
static int name_index(const struct doc *node, const char *const *names, int count, int fallback)
{
    struct str text = doc_str(node, STR(""));
    CHECK(fallback >= 0 && fallback < count);
    for (int i = 0; i < count; i++)
        if (str_is(text, names[i]))
            return i;
    return fallback;
}

static enum fault_level read_level(const struct doc *node, enum fault_level fallback)
{
    return (enum fault_level)name_index(node, fault_level_names, LEVELS, (int)fallback);
}

static int64_t read_time(const struct doc *node, int64_t fallback)
{
    int64_t ns = fallback;
    struct str text = doc_str(node, STR(""));
    return text.len && duration_parse(text, &ns) ? ns : fallback;
}

/* Reads the rule of a code. `named` has the codes that the document named before: of two levels for one code,
 * the larger wins. */
static void read_code(struct fault_table *table, struct str_map *named, const struct doc *item)
{
    struct fault_rule *rule = add_rule(table, doc_str(doc_get(item, "code"), STR("")));
    struct fault_rule read = {.code = rule->code};
    read.level = read_level(doc_get(item, "level"), LEVEL_NOT_HANDLE);
    read.domain =
        (enum fault_domain)name_index(doc_get(item, "domain"), fault_domain_names, DOMAINS, DOMAIN_UNKNOWN);
    read.high = str_is(doc_str(doc_get(item, "severity"), STR("low")), "high");
    read.action = arena_str(&table->arena, doc_str(doc_get(item, "action"), STR("")));
    if (str_map_put(named, rule->code, rule) && read.level < rule->level)
        return;
    *rule = read;
}

/* Returns the entry of "family/", a star and `end`, or NULL. */
static void *find_family(const struct str_map *map, struct str family, struct str end)
{
    char text[SIGNAL_CODE_MAX + 3];
    if (family.len + 2 + end.len > sizeof(text))
        return NULL;
    mem_copy(text, family.data, family.len);
    text[family.len] = '/';
    text[family.len + 1] = '*';
    mem_copy(text + family.len + 2, end.data, end.len);
    return str_map_get(map, (struct str){text, family.len + 2 + end.len});
}

/* Returns the entry of a code: its own, else its family's, else NULL. */
static void *find_code(const struct str_map *map, struct str code)
{
    void *found = str_map_get(map, code);
    struct str family, name;
    if (found || !str_cut(code, '/', &family, &name))
        return found;
    const char *dash = name.len ? memrchr(name.data, '-', name.len) : NULL;
    if (dash)
        found = find_family(map, family, (struct str){dash, name.len - (size_t)(dash - name.data)});
    return found ? found : find_family(map, family, STR(""));
}

/* Returns the rules by severity of a code, or of a family, without a row. Its code stays an unknown one. */
static struct fault_rule *unrated_rules(struct fault_table *table, struct str code)
{
    struct fault_rule *rules = str_map_get(&table->unrated, code);
    if (rules)
        return rules;
    rules = ARENA_ARRAY(&table->arena, struct fault_rule, SEVERITY_CRITICAL + 1);
    memcpy(rules, table->unknown, sizeof table->unknown);
    CHECK(rules[SEVERITY_CRITICAL].high && rules[SEVERITY_CRITICAL].code.len == 0);
    str_map_put(&table->unrated, arena_str(&table->arena, code), rules);
    return rules;
}

/* Returns the code's own rule, which is made from its family's if need be; NULL if neither exists. */
static struct fault_rule *own_rule(struct fault_table *table, struct str code)
{
    const struct fault_rule *found = find_code(&table->rules, code);
    if (!found)
        return NULL;
    struct fault_rule *rule = add_rule(table, code);
    struct str own = rule->code;
    if (found != rule)
        *rule = *found;
    rule->code = own;
    CHECK(str_equal(rule->code, code));
    return rule;
}

/* Calls `apply` for the rule of every code that the item names. A code without a row of its own gets a copy
 * of its family's, or of those by severity. */
static void for_codes(struct fault_table *table, const struct doc *item,
                      void (*apply)(struct fault_rule *rule, const struct doc *item))
{
    const struct doc *codes = doc_get(item, "codes");
    for (size_t i = 0; i < doc_len(codes); i++) {
        struct str code = doc_str(doc_at(codes, i), STR(""));
        struct fault_rule *rule = own_rule(table, code);
        struct fault_rule *rules = rule ? NULL : unrated_rules(table, code);
        if (rule)
            apply(rule, item);
        for (int severity = SEVERITY_NOTICE; rules && severity <= SEVERITY_CRITICAL; severity++)
            apply(&rules[severity], item);
    }
}

static void apply_frequency(struct fault_rule *rule, const struct doc *item)
{
    int64_t times = doc_int(doc_get(item, "times"), 0);
    rule->times = times > 0 && times <= FAULT_TIMES_MAX ? (uint32_t)times : 0;
    rule->window_ns = read_time(doc_get(item, "window"), 0);
    rule->frequent = read_level(doc_get(item, "level"), LEVEL_MANUALLY_SEPARATE);
    rule->release_ns = read_time(doc_get(item, "release"), 0);
}

static void apply_duration(struct fault_rule *rule, const struct doc *item)
{
    rule->settle_ns = read_time(doc_get(item, "after"), 0);
    rule->recover_ns = read_time(doc_get(item, "recover"), 0);
    rule->lasting = read_level(doc_get(item, "level"), LEVEL_PRE_SEPARATE);
}

static void read_relations(struct fault_table *table, const struct doc *relations)
{
    if (!relations)
        return;
    vec_clear(&table->relations);
    for (size_t i = 0; i < doc_len(relations); i++) {
        const struct doc *item = doc_at(relations, i);
        struct fault_relation relation = {
            .first = arena_str(&table->arena, doc_str(doc_get(item, "first"), STR(""))),
            .then = arena_str(&table->arena, doc_str(doc_get(item, "then"), STR(""))),
            .within_ns = read_time(doc_get(item, "within"), 300 * NS_PER_SECOND),
            .level = read_level(doc_get(item, "level"), LEVEL_SEPARATE),
        };
        vec_push(&table->relations, relation);
    }
}

static void read_unknown(struct fault_table *table, const struct doc *unknown)
{
    static const char *const names[] = {NULL, "notice", "minor", "major", "critical"};
    _Static_assert(sizeof names / sizeof *names == SEVERITY_CRITICAL + 1, "a name for each severity");
    for (int severity = SEVERITY_NOTICE; severity <= SEVERITY_CRITICAL; severity++)
        table->unknown[severity].level =
            read_level(doc_get(unknown, names[severity]), table->unknown[severity].level);
}

static uint32_t read_percent(const struct doc *node, uint32_t fallback)
{
    int64_t value = doc_int(node, fallback);
    return value >= 0 && value <= 100 ? (uint32_t)value : fallback;
}

static struct str *read_texts(struct fault_table *table, const struct doc *list, size_t *ret_count)
{
    struct str *texts = ARENA_ARRAY(&table->arena, struct str, doc_len(list));
    for (size_t i = 0; i < doc_len(list); i++)
        texts[i] = arena_str(&table->arena, doc_str(doc_at(list, i), STR("")));
    *ret_count = doc_len(list);
    return texts;
}

static void read_limit(const struct doc *node, uint32_t *limit)
{
    int64_t value = doc_int(node, *limit);
    *limit = value > 0 && value <= FAULT_PUBLIC_MAX ? (uint32_t)value : *limit;
}

static void read_public(struct fault_table *table, const struct doc *node)
{
    struct fault_public *public = &table->public;
    const struct doc *senders = doc_get(node, "senders");
    public->listed = senders != NULL;
    public->senders = ARENA_ARRAY(&table->arena, struct fault_sender, doc_len(senders));
    for (; public->sender_count < doc_len(senders); public->sender_count++) {
        const struct doc *item = doc_at(senders, public->sender_count);
        struct fault_sender *sender = &public->senders[public->sender_count];
        sender->name = arena_str(&table->arena, doc_str(doc_get(item, "name"), STR("")));
        sender->users = read_texts(table, doc_get(item, "users"), &sender->user_count);
        sender->codes = read_texts(table, doc_get(item, "codes"), &sender->code_count);
    }
    read_limit(doc_get(node, "perSecond"), &public->per_second);
    read_limit(doc_get(node, "burst"), &public->burst);
    read_limit(doc_get(node, "perSender"), &public->per_sender);
    read_limit(doc_get(node, "total"), &public->total);
}

static void read_document(struct fault_table *table, const struct doc *document)
{
    const struct doc *spec = doc_get(document, "spec");
    const struct doc *codes = doc_get(spec, "codes"), *frequency = doc_get(spec, "frequency");
    const struct doc *duration = doc_get(spec, "duration"), *breaker = doc_get(spec, "breaker");
    struct str_map named = {0};
    for (size_t i = 0; i < doc_len(codes); i++)
        read_code(table, &named, doc_at(codes, i));
    str_map_done(&named);
    read_unknown(table, doc_get(spec, "unknown"));
    for (size_t i = 0; i < doc_len(frequency); i++)
        for_codes(table, doc_at(frequency, i), apply_frequency);
    for (size_t i = 0; i < doc_len(duration); i++)
        for_codes(table, doc_at(duration, i), apply_duration);
    read_relations(table, doc_get(spec, "relations"));
    read_public(table, doc_get(spec, "public"));
    table->breaker.hour_percent = read_percent(doc_get(breaker, "perHour"), table->breaker.hour_percent);
    table->breaker.total_percent = read_percent(doc_get(breaker, "total"), table->breaker.total_percent);
}

struct fault_table *fault_table_new(const struct doc *document)
{
    struct fault_table *table = mem_alloc(sizeof(*table));
    add_defaults(table);
    if (document)
        read_document(table, document);
    return table;
}

void fault_table_free(struct fault_table *table)
{
    if (!table)
        return;
    str_map_done(&table->rules);
    str_map_done(&table->unrated);
    vec_done(&table->relations);
    arena_done(&table->arena);
    mem_free(table);
}

/* --- reading the table ---------------------------------------------------------------------------------- */

const struct fault_rule *fault_table_rule(const struct fault_table *table, struct str code,
                                          enum signal_severity severity)
{
    const struct fault_rule *rule = find_code(&table->rules, code);
    CHECK(severity >= SEVERITY_NOTICE && severity <= SEVERITY_CRITICAL);
    const struct fault_rule *unrated = rule ? NULL : find_code(&table->unrated, code);
    return rule ? rule : unrated ? &unrated[severity] : &table->unknown[severity];
}

const struct fault_relation *fault_table_relations(const struct fault_table *table, size_t *ret_count)
{
    *ret_count = table->relations.len;
    return table->relations.items;
}

struct fault_breaker fault_table_breaker(const struct fault_table *table)
{
    CHECK(table->breaker.hour_percent <= 100 && table->breaker.total_percent <= 100);
    return table->breaker;
}

const struct fault_public *fault_table_public(const struct fault_table *table)
{
    const struct fault_public *public = &table->public;
    CHECK(public->per_second > 0 && public->burst > 0 && public->per_sender > 0 && public->total > 0);
    return public;
}

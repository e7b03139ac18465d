/* Files that an operator writes for access: tokens and roles; and tokens of ServiceAccounts. Whatever is
 * in them ends in an error value or in a policy that answers questions. */
#include "doc/yaml.h"
#include "host/access/accounts.h"
#include "host/access/rbac.h"
#include "host/access/tokens.h"

static void fuzz_tokens(struct str text)
{
    struct tokens *tokens;
    struct error error;
    if (tokens_parse(text, &tokens, &error) < 0)
        return;
    (void)tokens_find(tokens, text);
    tokens_free(tokens);
}

/* As if the signature held, so that the claims are met. */
static void fuzz_account(struct str text)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = 16 << 20};
    struct account_claims claims;
    struct error error;
    if (account_token_read(NULL, &arena, text, &claims, &error) == 0)
        CHECK(claims.name.len && claims.audience_count > 0 && claims.audience_count <= ACCOUNT_AUDIENCES_MAX);
}

static void visit(void *context, const struct doc *rule)
{
    *(size_t *)context += doc_len(rule);
}

static void fuzz_roles(struct str text)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = 16 << 20};
    struct doc_list documents;
    struct error error;
    struct rbac *policy = rbac_new();
    size_t members = 0;
    rbac_add_builtin(policy);
    if (yaml_parse_all(&arena, text, &documents, &error) == 0)
        for (size_t i = 0; i < documents.len; i++)
            (void)rbac_add(policy, documents.items[i], &error);
    rbac_seal(policy);
    struct str groups[] = {STR("g")};
    struct access_user user = {.name = STR("u"), .groups = groups, .group_count = 1};
    struct access_attributes what = {
        .verb = STR("get"), .resource = STR("pods"), .namespace_ = STR("n"), .name = STR("x")};
    (void)rbac_allows(policy, &user, &what);
    (void)rbac_covers(policy, &user, STR("n"), rbac_role_rules(policy, STR("n"), STR("r")));
    rbac_visit_rules(policy, &user, STR("n"), visit, &members);
    rbac_free(policy);
}

/* Objects that come, change and go: in the end nothing is left that would allow anything. */
static void fuzz_follow(struct str text)
{
    enum { KIND = 1, ROUNDS = 3 };
    struct arena arena ARENA_CLEANUP = {.limit_bytes = 16 << 20};
    struct doc_list documents;
    struct error error;
    struct str groups[] = {STR("g")};
    struct access_user user = {.name = STR("u"), .groups = groups, .group_count = 1};
    struct access_attributes what = {
        .verb = STR("get"), .resource = STR("pods"), .namespace_ = STR("n"), .name = STR("x")};
    if (yaml_parse_all(&arena, text, &documents, &error) < 0)
        return;
    struct rbac *policy = rbac_new();
    bool allowed = false;
    for (size_t round = 0; round < ROUNDS; round++) { /* all; every other one, changed; none */
        rbac_follow_begin(policy, KIND);
        for (size_t i = 0; i < documents.len && round + 1 < ROUNDS; i += 1 + round)
            rbac_follow(policy, KIND, 1 + i, 1 + round * (i & 2), documents.items[i]);
        rbac_follow_end(policy, KIND);
        rbac_seal(policy);
        allowed = rbac_allows(policy, &user, &what);
    }
    CHECK(!allowed && !rbac_has_role(policy, STR("n"), STR("r")));
    rbac_free(policy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    fuzz_tokens(text);
    fuzz_account(text);
    fuzz_roles(text);
    fuzz_follow(text);
    return 0;
}

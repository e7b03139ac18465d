/* fuzz_guard.c - any bytes as a request of a user with few rights: whatever it is, it writes nothing beyond
 * them, and no answer has what its user may not read.
 *
 * The input is as for fuzz_http, with headers such as "authorization: Bearer TOKEN" and "impersonate-user:
 * NAME". The token "tenant-token" names a user with the role `edit` in the namespace "default", the token
 * "nobody-token" one without a role. The namespace "vault" has a Secret and a ConfigMap with a mark.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/hash.h"
#include "fuzz/api_world.h"
#include "host/access/access.h"

/* The mark is another one each time, so that no input can have learnt it. */
struct mark {
    char text[16], base64[32];
};

static const char tokens[] = "tenant-token,tenant,1\nnobody-token,nobody,2\n";
static const char roles[] =
    "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\n"
    "metadata: {name: tenant, namespace: default}\n"
    "subjects: [{kind: User, name: tenant, apiGroup: rbac.authorization.k8s.io}]\n"
    "roleRef: {kind: ClusterRole, name: edit, apiGroup: rbac.authorization.k8s.io}\n";
static const char space[] = "POST /api/v1/namespaces\ncontent-type: application/json\n\n"
                            "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\","
                            "\"metadata\":{\"name\":\"vault\"}}";
/* Kind in the path, kind, member, mark. */
static const char object[] = "POST /api/v1/namespaces/vault/%s\ncontent-type: application/json\n\n"
                             "{\"apiVersion\":\"v1\",\"kind\":\"%s\",\"metadata\":{\"name\":\"s\"},"
                             "\"%s\":{\"k\":\"%s\"}}";

static void fill_vault(struct api_world *world, struct mark *ret_mark)
{
    static uint64_t marks;
    struct buf text = {0}, answer = {0};
    CHECK(world_ask(world, str_from(space), &answer) == 201);
    snprintf(ret_mark->text, sizeof ret_mark->text, "m%014llx",
             (unsigned long long)hash_mix(++marks) & 0xffffffffffffff);
    base64_encode(str_from(ret_mark->text), &text);
    snprintf(ret_mark->base64, sizeof ret_mark->base64, "%s", text.data);
    buf_clear(&text);
    buf_printf(&text, object, "secrets", "Secret", "stringData", ret_mark->text);
    CHECK(world_ask(world, buf_str(&text), &answer) == 201);
    buf_clear(&text);
    buf_printf(&text, object, "configmaps", "ConfigMap", "data", ret_mark->text);
    CHECK(world_ask(world, buf_str(&text), &answer) == 201);
    buf_done(&text);
    buf_done(&answer);
}

/* Keeps the text in memory under a path; the descriptor stays open. */
static const char *path_of(const char *text, char path[32])
{
    int fd = memfd_create("fuzz_guard", 0);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    snprintf(path, 32, "/proc/self/fd/%d", fd);
    return path;
}

static struct access *access_of_users(void)
{
    static struct access *access;
    static char tokens_path[32], roles_path[32];
    struct error error = {0};
    if (access)
        return access;
    struct access_options options = {.tokens = path_of(tokens, tokens_path),
                                     .roles = path_of(roles, roles_path),
                                     .audit = "/dev/null"};
    if (access_new(&options, &access, &error) < 0) {
        fprintf(stderr, "%s\n", error.text);
        abort();
    }
    return access;
}

static bool has(struct str text, const char *part)
{
    return text.len > 0 && memmem(text.data, text.len, part, strlen(part)) != NULL;
}

/* No user here may write outside of "default", nor give anybody a right; nobody may write at all. */
static void judge_write(struct api_world *world, const struct write_event *write)
{
    const bool *is_tenant = world->context;
    CHECK(*is_tenant);
    CHECK(str_is(write->namespace_, "default"));
    CHECK(write->object != OBJECT_ROLE && write->object != OBJECT_ROLE_BINDING);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = {(const char *)data, size};
    struct api_world world = {0};
    struct buf answer = {0};
    struct mark mark;
    if (size > 64 * 1024)
        return 0;
    world_begin(&world);
    fill_vault(&world, &mark);
    bool is_tenant = has(text, "tenant-token");
    world.api->access = access_of_users();
    world.saw = judge_write;
    world.context = &is_tenant;
    int code = world_ask(&world, text, &answer);
    CHECK(!has(buf_str(&answer), mark.text) && !has(buf_str(&answer), mark.base64));
    CHECK(code != 201 || is_tenant || has(text, "nobody-token")); /* who is known may ask for a review */
    world_end(&world);
    buf_done(&answer);
    return 0;
}

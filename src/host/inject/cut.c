/* cut.c - packet loss for the processes of a control group: a program of a few instructions is attached to
 * the group, and the kernel runs it for each packet that a socket of the group sends or receives. Refused
 * packets vanish, as on a broken line, whatever the addresses and however many processes there are. */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/check.h"
#include "host/inject/inject.h"

#define PROGRAM_NAME  "phx_cut" /* by which it is found again */
#define CGROUP2_MAGIC 0x63677270
#define PPM           1000000u
enum { PROGRAMS_MAX = 64 };

static const char *mount_of_cgroups(void)
{
    static const char *const places[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    for (size_t i = 0; i < 2; i++) {
        struct statfs found;
        if (statfs(places[i], &found) == 0 && found.f_type == CGROUP2_MAGIC)
            return places[i];
    }
    return NULL;
}

bool inject_cgroup_of(int pid, char ret_path[INJECT_PATH_MAX])
{
    char line[INJECT_PATH_MAX - 64], path[64];
    const char *mount = mount_of_cgroups();
    snprintf(path, sizeof path, "/proc/%d/cgroup", pid);
    FILE *file = mount ? fopen(path, "re") : NULL;
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        found = strncmp(line, "0::/", 4) == 0;
    }
    if (file)
        fclose(file);
    if (found)
        snprintf(ret_path, INJECT_PATH_MAX, "%s%s", mount, strcmp(line, "0::/") == 0 ? "" : line + 3);
    return found;
}

static int bpf(enum bpf_cmd command, union bpf_attr *attributes)
{
    return (int)syscall(SYS_bpf, command, attributes, sizeof *attributes);
}

/* Keeps (1) or drops (0) each packet by chance. */
static int load(uint32_t loss_ppm, enum bpf_attach_type type)
{
    uint32_t bound = loss_ppm >= PPM ? 0 : (uint32_t)((uint64_t)loss_ppm * UINT32_MAX / PPM);
    struct bpf_insn some[] = {
        {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_prandom_u32},
        {.code = BPF_ALU | BPF_MOV | BPF_K, .dst_reg = BPF_REG_1, .imm = (int32_t)bound},
        {.code = BPF_JMP | BPF_JGE | BPF_X, .dst_reg = BPF_REG_0, .src_reg = BPF_REG_1, .off = 2},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
        {.code = BPF_JMP | BPF_EXIT},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 1},
        {.code = BPF_JMP | BPF_EXIT},
    };
    struct bpf_insn all[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = 0},
                             {.code = BPF_JMP | BPF_EXIT}};
    bool every = loss_ppm >= PPM;
    union bpf_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.prog_type = BPF_PROG_TYPE_CGROUP_SKB;
    attributes.expected_attach_type = type;
    attributes.insns = (uintptr_t)(every ? all : some);
    attributes.insn_cnt = every ? 2 : sizeof some / sizeof *some;
    attributes.license = (uintptr_t) "GPL";
    memcpy(attributes.prog_name, PROGRAM_NAME, sizeof PROGRAM_NAME);
    return bpf(BPF_PROG_LOAD, &attributes);
}

static int open_group(const char *cgroup, struct error *error)
{
    int fd = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        error_set_errno(error, errno, "control group %s", cgroup);
    return fd;
}

/* Opens a program, and stores whether it is one of ours. Returns its descriptor, or -1. */
static int program_of(uint32_t id, bool *ret_ours)
{
    struct bpf_prog_info info;
    union bpf_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.prog_id = id;
    int fd = bpf(BPF_PROG_GET_FD_BY_ID, &attributes);
    if (fd < 0)
        return -1;
    memset(&info, 0, sizeof info);
    memset(&attributes, 0, sizeof attributes);
    attributes.info.bpf_fd = (uint32_t)fd;
    attributes.info.info_len = sizeof info;
    attributes.info.info = (uintptr_t)&info;
    *ret_ours = bpf(BPF_OBJ_GET_INFO_BY_FD, &attributes) == 0 && strcmp(info.name, PROGRAM_NAME) == 0;
    return fd;
}

static int detach(int group, enum bpf_attach_type type, size_t *count, struct error *error)
{
    uint32_t ids[PROGRAMS_MAX];
    union bpf_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.query.target_fd = (uint32_t)group;
    attributes.query.attach_type = type;
    attributes.query.prog_ids = (uintptr_t)ids;
    attributes.query.prog_cnt = PROGRAMS_MAX;
    if (bpf(BPF_PROG_QUERY, &attributes) < 0)
        return error_set_errno(error, errno, "which programs look at the packets of a control group");
    for (uint32_t i = 0; i < attributes.query.prog_cnt; i++) {
        bool ours = false;
        int program = program_of(ids[i], &ours);
        union bpf_attr away;
        memset(&away, 0, sizeof away);
        away.target_fd = (uint32_t)group;
        away.attach_bpf_fd = (uint32_t)program;
        away.attach_type = type;
        if (program >= 0 && ours && bpf(BPF_PROG_DETACH, &away) == 0)
            ++*count;
        if (program >= 0)
            close(program);
    }
    return 0;
}

static int attach(int group, uint32_t loss_ppm, enum bpf_attach_type type, struct error *error)
{
    int program = load(loss_ppm, type);
    if (program < 0)
        return error_set_errno(error, errno,
                               "the kernel takes no program for packets (it needs root, or CAP_BPF and "
                               "CAP_NET_ADMIN)");
    union bpf_attr attributes;
    memset(&attributes, 0, sizeof attributes);
    attributes.target_fd = (uint32_t)group;
    attributes.attach_bpf_fd = (uint32_t)program;
    attributes.attach_type = type;
    attributes.attach_flags = BPF_F_ALLOW_MULTI;
    int rc = bpf(BPF_PROG_ATTACH, &attributes);
    if (rc < 0)
        rc = error_set_errno(error, errno, "a program for packets cannot be put at a control group");
    close(program);
    return rc;
}

int inject_cut_heal(const char *cgroup, size_t *ret_count, struct error *error)
{
    int group = open_group(cgroup, error);
    if (group < 0)
        return ERROR_IO;
    size_t count = 0;
    int rc = detach(group, BPF_CGROUP_INET_INGRESS, &count, error);
    if (rc == 0)
        rc = detach(group, BPF_CGROUP_INET_EGRESS, &count, error);
    close(group);
    if (rc == 0)
        *ret_count = count;
    return rc;
}

int inject_cut(const char *cgroup, enum inject_direction direction, uint32_t loss_ppm, struct error *error)
{
    size_t before = 0;
    CHECK(direction >= DIRECTION_IN && direction <= DIRECTION_BOTH && loss_ppm > 0);
    int rc = inject_cut_heal(cgroup, &before, error);
    int group = rc == 0 ? open_group(cgroup, error) : -1;
    if (group < 0)
        return rc < 0 ? rc : ERROR_IO;
    if (direction & DIRECTION_IN)
        rc = attach(group, loss_ppm, BPF_CGROUP_INET_INGRESS, error);
    if (rc == 0 && direction & DIRECTION_OUT)
        rc = attach(group, loss_ppm, BPF_CGROUP_INET_EGRESS, error);
    close(group);
    return rc;
}

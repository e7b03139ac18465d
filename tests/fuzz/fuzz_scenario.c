/* A scenario file: no crash; a refusal says where and why, and what is taken is within its limits. */
#include <stdint.h>

#include "base/check.h"
#include "host/inject/inject.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct scenario scenario = {0};
    struct error error = {0};
    int rc = scenario_read(&arena, (struct str){(const char *)data, size}, &scenario, &error);
    CHECK(rc == 0 || (error.code == rc && error.text[0]));
    CHECK(rc < 0 || (scenario.step_count > 0 && scenario.step_count <= SCENARIO_STEPS_MAX));
    for (size_t i = 0; i < scenario.step_count; i++) {
        const struct scenario_step *step = &scenario.steps[i];
        CHECK(step->object_count > 0 && step->pick <= step->object_count && step->repeat > 0);
        for (size_t k = 0; k < step->object_count; k++)
            CHECK(!inject_action_refuses(step->action, step->objects[k].kind));
    }
    return 0;
}

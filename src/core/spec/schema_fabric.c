/* schema_fabric.c - phalanx.dev/v1: Cubes, Switches, Slices and FabricSessions as they are shown, for
 * `explain` and for merges. Of a user's write, `spec.unschedulable` of a Cube or Switch is kept
 * (core/write/fabric.c). */
#include "core/spec/schema_stored.h"

/* clang-format off */
static const struct schema fabric_condition = {"FabricCondition", TABLE(
    STRING("type", REQUIRED), STRING("status", REQUIRED), STRING("reason"), STRING("message"),
    STRING("lastTransitionTime"))};

static const struct schema cube_spec = {"CubeSpec", TABLE(
    BOOLEAN("unschedulable"), STRING("pod"), INT32("index"), STRINGS("machines"))};
static const struct schema cube_status = {"CubeStatus", TABLE(
    INT32("readyMachines"), INT32("chips"), INT32("busyChips"), STRINGS("slices"), STRINGS("badSwitches"),
    LIST("conditions", fabric_condition))};
const struct schema schema_cube = {"Cube", TABLE(
    WHOLE, OBJECT("spec", cube_spec), OBJECT("status", cube_status))};

static const struct schema switch_spec = {"SwitchSpec", TABLE(
    BOOLEAN("unschedulable"), STRING("pod"), STRING("axis", ENUM("x,y,z")), INT32("index"),
    STRING("protocol"), STRING("address"))};
static const struct schema switch_circuit = {"SwitchCircuit", TABLE(
    STRING("plus"), STRING("minus"), INT32("plusPort"), INT32("minusPort"))};
static const struct schema switch_status = {"SwitchStatus", TABLE(
    STRING("health", ENUM("Unseen,Up,Degraded,Down")), INT32("failures"), STRINGS("alarms"),
    STRINGS("badCubes"), LIST("circuits", switch_circuit), LIST("conditions", fabric_condition))};
const struct schema schema_switch = {"Switch", TABLE(
    WHOLE, OBJECT("spec", switch_spec), OBJECT("status", switch_status))};

static const struct schema slice_spec = {"SliceSpec", TABLE(
    STRING("shape"), STRING("onSwitchLoss", ENUM("Reroute,Move")))};
static const struct schema slice_status = {"SliceStatus", TABLE(
    STRING("phase", ENUM("Connecting,Connected,Moving,Lost,Failed")), STRING("pod"), STRINGS("cubes"),
    INT32("switches"), STRINGS("without"), STRING("connectedAt"), LIST("conditions", fabric_condition))};
const struct schema schema_slice = {"Slice", TABLE(
    WHOLE, OBJECT("spec", slice_spec), OBJECT("status", slice_status))};

static const struct schema fabric_session_spec = {"FabricSessionSpec", TABLE(STRING("slice"))};
static const struct schema fabric_session_status = {"FabricSessionStatus", TABLE(
    STRING("tables"), INT32("changes"), STRINGS("without"), STRING("toldAt"),
    LIST("conditions", fabric_condition))};
const struct schema schema_fabric_session = {"FabricSession", TABLE(
    WHOLE, OBJECT("spec", fabric_session_spec), OBJECT("status", fabric_session_status))};
/* clang-format on */

/* schema_volume.c - v1 Volume and PersistentVolumeClaim. Sources of storage vendors are kept unchecked. */
#include "core/spec/schema_table.h"

/* clang-format off */
static const struct schema key_to_path = {"KeyToPath", TABLE(
    STRING("key", REQUIRED), STRING("path", REQUIRED), INT32("mode"))};
static const struct schema config_map_volume = {"ConfigMapVolumeSource", TABLE(
    STRING("name", DEFAULT("")), LIST("items", key_to_path), INT32("defaultMode"), BOOLEAN("optional"))};
static const struct schema secret_volume = {"SecretVolumeSource", TABLE(
    STRING("secretName"), LIST("items", key_to_path), INT32("defaultMode"), BOOLEAN("optional"))};
static const struct schema empty_dir = {"EmptyDirVolumeSource", TABLE(STRING("medium"),
    QUANTITY("sizeLimit"))};
static const struct schema host_path = {"HostPathVolumeSource", TABLE(STRING("path", REQUIRED),
    STRING("type"))};
static const struct schema claim_volume = {"PersistentVolumeClaimVolumeSource", TABLE(
    STRING("claimName", REQUIRED), BOOLEAN("readOnly"))};
static const struct schema nfs_volume = {"NFSVolumeSource", TABLE(
    STRING("server", REQUIRED), STRING("path", REQUIRED), BOOLEAN("readOnly"))};
static const struct schema downward_file = {"DownwardAPIVolumeFile", TABLE(
    STRING("path", REQUIRED), OBJECT("fieldRef", schema_field_reference),
    OBJECT("resourceFieldRef", schema_resource_reference), INT32("mode"))};
static const struct schema downward_volume = {"DownwardAPIVolumeSource", TABLE(
    LIST("items", downward_file), INT32("defaultMode"))};
static const struct schema projected_map = {"ProjectedReference", TABLE(
    STRING("name", DEFAULT("")), LIST("items", key_to_path), BOOLEAN("optional"))};
static const struct schema projected_downward = {"DownwardAPIProjection", TABLE(
    LIST("items", downward_file))};
static const struct schema projected_token = {"ServiceAccountTokenProjection", TABLE(
    STRING("audience"), INT64("expirationSeconds"), STRING("path", REQUIRED))};
static const struct schema projection = {"VolumeProjection", TABLE(
    OBJECT("configMap", projected_map), OBJECT("secret", projected_map),
    OBJECT("downwardAPI", projected_downward), OBJECT("serviceAccountToken", projected_token),
    ANYTHING("clusterTrustBundle"), ANYTHING("podCertificate"))};
static const struct schema projected_volume = {"ProjectedVolumeSource", TABLE(
    LIST("sources", projection), INT32("defaultMode"))};
static const struct schema csi_volume = {"CSIVolumeSource", TABLE(
    STRING("driver", REQUIRED), BOOLEAN("readOnly"), STRING("fsType"), STRING_MAP("volumeAttributes"),
    OBJECT("nodePublishSecretRef", schema_local_reference))};
static const struct schema image_volume = {"ImageVolumeSource", TABLE(STRING("reference"),
    STRING("pullPolicy"))};

static const struct schema claim_resources = {"VolumeResourceRequirements", TABLE(
    QUANTITY_MAP("limits"), QUANTITY_MAP("requests"))};
static const struct schema claim_source = {"TypedObjectReference", TABLE(
    STRING("apiGroup"), STRING("kind", REQUIRED), STRING("name", REQUIRED), STRING("namespace"))};
const struct schema schema_claim_spec = {"PersistentVolumeClaimSpec", TABLE(
    STRINGS("accessModes"), OBJECT("selector", schema_label_selector), OBJECT("resources", claim_resources),
    STRING("volumeName"), STRING("storageClassName"), STRING("volumeMode"),
    OBJECT("dataSource", claim_source),
    OBJECT("dataSourceRef", claim_source), STRING("volumeAttributesClassName"))};
static const struct schema claim_template = {"PersistentVolumeClaimTemplate", TABLE(
    OBJECT("metadata", schema_embedded_meta), OBJECT("spec", schema_claim_spec, REQUIRED))};
static const struct schema ephemeral_volume = {"EphemeralVolumeSource", TABLE(
    OBJECT("volumeClaimTemplate", claim_template))};

const struct schema schema_volume = {"Volume", TABLE(
    STRING("name", REQUIRED), OBJECT("emptyDir", empty_dir), OBJECT("hostPath", host_path),
    OBJECT("configMap", config_map_volume), OBJECT("secret", secret_volume),
    OBJECT("persistentVolumeClaim", claim_volume), OBJECT("projected", projected_volume),
    OBJECT("downwardAPI", downward_volume), OBJECT("nfs", nfs_volume), OBJECT("csi", csi_volume),
    OBJECT("ephemeral", ephemeral_volume), OBJECT("image", image_volume), ANYTHING("awsElasticBlockStore"),
    ANYTHING("azureDisk"), ANYTHING("azureFile"), ANYTHING("cephfs"), ANYTHING("cinder"), ANYTHING("fc"),
    ANYTHING("flexVolume"), ANYTHING("flocker"), ANYTHING("gcePersistentDisk"), ANYTHING("gitRepo"),
    ANYTHING("glusterfs"), ANYTHING("iscsi"), ANYTHING("photonPersistentDisk"), ANYTHING("portworxVolume"),
    ANYTHING("quobyte"), ANYTHING("rbd"), ANYTHING("scaleIO"), ANYTHING("storageos"),
    ANYTHING("vsphereVolume"))};
/* clang-format on */

/* The custom form of each operation means what its generic form means. */
#include "flow/ir/texts.h"

static const char arguments[] =
    "%k: tensor<2xui64>, %m: tensor<4x4xf32>, %c: tensor<4x8xcomplex<f32>>, %r: tensor<4x8xf32>, %v: "
    "tensor<8xf32>, "
    "%p: tensor<i1>, %i: tensor<i32>, %z: tensor<f32>, %n: tensor<4xi32>, %img: tensor<1x4x4x1xf32>, "
    "%w: tensor<3x3x1x1xf32>, %t: !stablehlo.token";

static struct str printed(const char *body, struct arena *arena)
{
    char text[4096];
    struct ir_module *module = text_module(text_function(text, sizeof text, arguments, body));
    struct str result = ir_print(module, arena);
    module_is_kept(module);
    ir_module_free(module);
    return result;
}

static const struct form {
    const char *custom, *generic;
} forms[] = {
    {"%0 = stablehlo.add %m, %m : tensor<4x4xf32>",
     "%0 = \"stablehlo.add\"(%m, %m) : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>"},
    {"%0 = stablehlo.tanh %m {mhlo.x = 1 : i32} : tensor<4x4xf32>",
     "%0 = \"stablehlo.tanh\"(%m) : (tensor<4x4xf32>) -> tensor<4x4xf32>"},
    {"%0 = stablehlo.abs %c : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xf32>",
     "%0 = \"stablehlo.abs\"(%c) : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xf32>"},
    {"%0 = stablehlo.complex %r, %r : tensor<4x8xcomplex<f32>>",
     "%0 = \"stablehlo.complex\"(%r, %r) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xcomplex<f32>>"},
    {"%0 = stablehlo.compare  LT, %n, %n,  SIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>",
     "%0 = \"stablehlo.compare\"(%n, %n) <{compare_type = #stablehlo<comparison_type SIGNED>, "
     "comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<4xi32>, tensor<4xi32>) -> "
     "tensor<4xi1>"},
    {"%0 = stablehlo.select %p, %m, %m : tensor<i1>, tensor<4x4xf32>",
     "%0 = \"stablehlo.select\"(%p, %m, %m) : (tensor<i1>, tensor<4x4xf32>, tensor<4x4xf32>) -> "
     "tensor<4x4xf32>"},
    {"%0 = stablehlo.clamp %z, %m, %z : (tensor<f32>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>",
     "%0 = \"stablehlo.clamp\"(%z, %m, %z) : (tensor<f32>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>"},
    {"%0 = stablehlo.constant dense<[1, -2]> : tensor<2xi8>",
     "%0 = \"stablehlo.constant\"() {value = dense<\"0x01FE\"> : tensor<2xi8>} : () -> tensor<2xi8>"},
    {"%0 = stablehlo.iota dim = 1 : tensor<2x3xi32>",
     "%0 = \"stablehlo.iota\"() <{iota_dimension = 1 : i64}> : () -> tensor<2x3xi32>"},
    {"%0 = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<8xf32>) -> tensor<2x8xf32>",
     "%0 = \"stablehlo.broadcast_in_dim\"(%v) {broadcast_dimensions = dense<1> : tensor<1xi64>} : "
     "(tensor<8xf32>) -> "
     "tensor<2x8xf32>"},
    {"%0 = stablehlo.broadcast %v, sizes = [2] : (tensor<8xf32>) -> tensor<2x8xf32>",
     "%0 = stablehlo.broadcast_in_dim %v, dims = [1] : (tensor<8xf32>) -> tensor<2x8xf32>"},
    {"%0 = stablehlo.transpose %r, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>",
     "%0 = \"stablehlo.transpose\"(%r) <{permutation = array<i64: 1, 0>}> : (tensor<4x8xf32>) -> "
     "tensor<8x4xf32>"},
    {"%0 = stablehlo.reverse %r, dims = [0] : tensor<4x8xf32>",
     "%0 = \"stablehlo.reverse\"(%r) <{dimensions = array<i64: 0>}> : (tensor<4x8xf32>) -> tensor<4x8xf32>"},
    {"%0 = stablehlo.concatenate %r, %r, dim = 0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>",
     "%0 = \"stablehlo.concatenate\"(%r, %r) <{dimension = 0 : i64}> : (tensor<4x8xf32>, tensor<4x8xf32>) -> "
     "tensor<8x8xf32>"},
    {"%0 = stablehlo.slice %r [0:4:2, 1:3] : (tensor<4x8xf32>) -> tensor<2x2xf32>",
     "%0 = \"stablehlo.slice\"(%r) <{start_indices = array<i64: 0, 1>, limit_indices = array<i64: 4, 3>, "
     "strides = "
     "array<i64: 2, 1>}> : (tensor<4x8xf32>) -> tensor<2x2xf32>"},
    {"%0 = stablehlo.slice %z [] : (tensor<f32>) -> tensor<f32>",
     "%0 = \"stablehlo.slice\"(%z) <{start_indices = array<i64>, limit_indices = array<i64>, strides = "
     "array<i64>}> : "
     "(tensor<f32>) -> tensor<f32>"},
    {"%0 = stablehlo.pad %v, %z, low = [-1], high = [2], interior = [1] : (tensor<8xf32>, tensor<f32>) -> "
     "tensor<16xf32>",
     "%0 = \"stablehlo.pad\"(%v, %z) <{edge_padding_low = array<i64: -1>, edge_padding_high = array<i64: 2>, "
     "interior_padding = array<i64: 1>}> : (tensor<8xf32>, tensor<f32>) -> tensor<16xf32>"},
    {"%0 = stablehlo.dynamic_slice %v, %i, sizes = [3] : (tensor<8xf32>, tensor<i32>) -> tensor<3xf32>",
     "%0 = \"stablehlo.dynamic_slice\"(%v, %i) <{slice_sizes = array<i64: 3>}> : (tensor<8xf32>, "
     "tensor<i32>) -> "
     "tensor<3xf32>"},
    {"%0 = stablehlo.dot_general %m, %r, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : "
     "(tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>",
     "%0 = \"stablehlo.dot_general\"(%m, %r) <{dot_dimension_numbers = "
     "#stablehlo.dot<lhs_contracting_dimensions = "
     "[1], rhs_contracting_dimensions = [0]>}> : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>"},
    {"%0 = stablehlo.dot %m, %r : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>",
     "%0 = stablehlo.dot_general %m, %r, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x8xf32>) "
     "-> "
     "tensor<4x8xf32>"},
    {"%0 = stablehlo.dot_general %m, %r, batching_dims = [0] x [0], contracting_dims = [] x [] : "
     "(tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x4x8xf32>",
     "%0 = \"stablehlo.dot_general\"(%m, %r) <{dot_dimension_numbers = "
     "#stablehlo.dot<lhs_batching_dimensions = [0], "
     "rhs_batching_dimensions = [0]>}> : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x4x8xf32>"},
    {"%0 = stablehlo.convolution(%img, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = "
     "{stride = "
     "[1, 2], pad = [[1, 1], [0, 0]], lhs_dilate = [1, 2], rhs_dilate = [1, 1], reverse = [false, true]} "
     "{batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision "
     "DEFAULT>]} "
     ": (tensor<1x4x4x1xf32>, tensor<3x3x1x1xf32>) -> tensor<1x4x3x1xf32>",
     "%0 = \"stablehlo.convolution\"(%img, %w) <{window_strides = array<i64: 1, 2>, padding = dense<[[1, 1], "
     "[0, 0]]> : "
     "tensor<2x2xi64>, lhs_dilation = array<i64: 1, 2>, window_reversal = array<i1: false, true>, "
     "dimension_numbers = "
     "#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, "
     "batch_group_count = 1 : "
     "i64}> : (tensor<1x4x4x1xf32>, tensor<3x3x1x1xf32>) -> tensor<1x4x3x1xf32>"},
    {"%0 = stablehlo.reduce(%r init: %z) applies stablehlo.maximum across dimensions = [1] : "
     "(tensor<4x8xf32>, "
     "tensor<f32>) -> tensor<4xf32>",
     "%0 = \"stablehlo.reduce\"(%r, %z) <{dimensions = array<i64: 1>}> ({\n^bb0(%a: tensor<f32>, %b: "
     "tensor<f32>):\n"
     "%x = stablehlo.maximum %a, %b : tensor<f32>\nstablehlo.return %x : tensor<f32>\n}) : (tensor<4x8xf32>, "
     "tensor<f32>) -> tensor<4xf32>"},
    {"%0:2 = stablehlo.reduce(%v init: %z), (%v init: %z) across dimensions = [0] : (tensor<8xf32>, "
     "tensor<8xf32>, "
     "tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)\n reducer(%a: tensor<f32>, %c1: tensor<f32>) "
     "(%b: "
     "tensor<f32>, %d: tensor<f32>)  {\n%x = stablehlo.subtract %a, %d : tensor<f32>\n"
     "stablehlo.return %x, %c1 : tensor<f32>, tensor<f32>\n}",
     "%0:2 = \"stablehlo.reduce\"(%v, %v, %z, %z) <{dimensions = array<i64: 0>}> ({\n^bb0(%a: tensor<f32>, "
     "%b: "
     "tensor<f32>, %c1: tensor<f32>, %d: tensor<f32>):\n%x = stablehlo.subtract %a, %d : tensor<f32>\n"
     "stablehlo.return %x, %c1 : tensor<f32>, tensor<f32>\n}) : (tensor<8xf32>, tensor<8xf32>, tensor<f32>, "
     "tensor<f32>) -> (tensor<f32>, tensor<f32>)"},
    {"%0:2 = stablehlo.while(%a = %i, %b = %z) : tensor<i32>, tensor<f32> attributes {mhlo.x = {}}\n cond {\n"
     "%x = stablehlo.compare LT, %a, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>\nstablehlo.return %x : "
     "tensor<i1>\n"
     "} do {\nstablehlo.return %a, %b : tensor<i32>, tensor<f32>\n}",
     "%0:2 = \"stablehlo.while\"(%i, %z) ({\n^bb0(%a: tensor<i32>, %b: tensor<f32>):\n"
     "%x = stablehlo.compare LT, %a, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>\nstablehlo.return %x : "
     "tensor<i1>\n"
     "}, {\n^bb0(%a: tensor<i32>, %b: tensor<f32>):\nstablehlo.return %a, %b : tensor<i32>, tensor<f32>\n}) "
     ": "
     "(tensor<i32>, tensor<f32>) -> (tensor<i32>, tensor<f32>)"},
    {"%0 = stablehlo.cholesky %m, lower = true : tensor<4x4xf32>",
     "%0 = \"stablehlo.cholesky\"(%m) <{lower = true}> : (tensor<4x4xf32>) -> tensor<4x4xf32>"},
    {"%0 = stablehlo.fft %r, type =  RFFT, length = [8] : (tensor<4x8xf32>) -> tensor<4x5xcomplex<f32>>",
     "%0 = \"stablehlo.fft\"(%r) <{fft_type = #stablehlo<fft_type RFFT>, fft_length = array<i64: 8>}> : "
     "(tensor<4x8xf32>) -> tensor<4x5xcomplex<f32>>"},
    {"%0, %1 = stablehlo.rng_bit_generator %k, algorithm =  THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, "
     "tensor<4xui32>)",
     "%0:2 = \"stablehlo.rng_bit_generator\"(%k) <{rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}> : "
     "(tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)"},
    {"%0 = stablehlo.reduce_precision %v, format = e5m10 : tensor<8xf32>",
     "%0 = \"stablehlo.reduce_precision\"(%v) <{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}> : "
     "(tensor<8xf32>) "
     "-> tensor<8xf32>"},
    {"%0:2 = stablehlo.optimization_barrier %m, %p : tensor<4x4xf32>, tensor<i1>",
     "%0:2 = \"stablehlo.optimization_barrier\"(%m, %p) : (tensor<4x4xf32>, tensor<i1>) -> (tensor<4x4xf32>, "
     "tensor<i1>)"},
    {"%0 = stablehlo.after_all %t, %t : !stablehlo.token",
     "%0 = \"stablehlo.after_all\"(%t, %t) : (!stablehlo.token, !stablehlo.token) -> !stablehlo.token"},
    {"%0 = stablehlo.create_token : !stablehlo.token",
     "%0 = \"stablehlo.after_all\"() : () -> !stablehlo.token"},
    {"%0 = stablehlo.partition_id : tensor<ui32>", "%0 = \"stablehlo.partition_id\"() : () -> tensor<ui32>"},
    {"stablehlo.custom_call @check.expect_eq(%m, %m) {has_side_effect = true} : (tensor<4x4xf32>, "
     "tensor<4x4xf32>) -> "
     "()",
     "check.expect_eq %m, %m : tensor<4x4xf32>"},
    {"check.expect_eq_const %z, dense<1.0> : tensor<f32>",
     "\"check.expect_eq_const\"(%z) {value = dense<0x3F800000> : tensor<f32>} : (tensor<f32>) -> ()"},
    {"%0 = stablehlo.custom_call @mhlo.tan(%m) {mhlo.attributes = {}, mhlo.version = 1 : i64} : "
     "(tensor<4x4xf32>) -> "
     "tensor<4x4xf32>",
     "%0 = chlo.tan %m : tensor<4x4xf32> -> tensor<4x4xf32>"},
    {"%0 = chlo.erf_inv %m : tensor<4x4xf32>",
     "%0 = stablehlo.custom_call @mhlo.erf_inv(%m) : (tensor<4x4xf32>) -> tensor<4x4xf32>"},
    {"%0, %1 = chlo.top_k(%m, k = 2) : tensor<4x4xf32> -> (tensor<4x2xf32>, tensor<4x2xi32>)",
     "%0:2 = stablehlo.custom_call @mhlo.topk(%m) : (tensor<4x4xf32>) -> (tensor<4x2xf32>, tensor<4x2xi32>)"},
    {"%0 = \"stablehlo.sort\"(%v) ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n%x = stablehlo.compare LT, "
     "%a, %b, "
     "TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>\nstablehlo.return %x : tensor<i1>\n}) : "
     "(tensor<8xf32>) -> "
     "tensor<8xf32>",
     "%0 = \"stablehlo.sort\"(%v) <{dimension = 0 : i64, is_stable = false}> ({\n^bb0(%a: tensor<f32>, %b: "
     "tensor<f32>):\n%x = stablehlo.compare LT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> "
     "tensor<i1>\n"
     "stablehlo.return %x : tensor<i1>\n}) : (tensor<8xf32>) -> tensor<8xf32>"},
    {"%0 = \"stablehlo.reduce_window\"(%v, %z) <{window_dimensions = array<i64: 2>}> ({\n^bb0(%a: "
     "tensor<f32>, %b: "
     "tensor<f32>):\nstablehlo.return %a : tensor<f32>\n}) : (tensor<8xf32>, tensor<f32>) -> tensor<7xf32>",
     "%0 = \"stablehlo.reduce_window\"(%v, %z) <{window_dimensions = array<i64: 2>, window_strides = "
     "array<i64: 1>, "
     "base_dilations = array<i64: 1>, window_dilations = array<i64: 1>, padding = dense<0> : "
     "tensor<1x2xi64>}> ({\n"
     "^bb0(%a: tensor<f32>, %b: tensor<f32>):\nstablehlo.return %a : tensor<f32>\n}) : (tensor<8xf32>, "
     "tensor<f32>) -> "
     "tensor<7xf32>"},
    {"%0 = \"stablehlo.map\"(%v, %v) <{dimensions = array<i64: 0>}> ({\n^bb0(%a: tensor<f32>, %b: "
     "tensor<f32>):\n"
     "stablehlo.return %b : tensor<f32>\n}) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>",
     "%0 = \"stablehlo.map\"(%v, %v) ({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\nstablehlo.return %b : "
     "tensor<f32>\n}) "
     "{dimensions = dense<0> : tensor<1xi64>} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>"},
    {"%0:3 = \"stablehlo.batch_norm_training\"(%r, %v, %v) <{epsilon = 1.0e-3 : f32, feature_index = 1 : "
     "i64}> : "
     "(tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)",
     "%0, %1:2 = \"stablehlo.batch_norm_training\"(%r, %v, %v) {feature_index = 1 : i64, epsilon = 0.001 : "
     "f32} : "
     "(tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)"},
    {"%0 = \"stablehlo.batch_norm_inference\"(%r, %v, %v, %v, %v) <{epsilon = 1.0 : f32, feature_index = 1 : "
     "i64}> : "
     "(tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<4x8xf32>",
     "%0 = \"stablehlo.batch_norm_inference\"(%r, %v, %v, %v, %v) {epsilon = 1.0 : f32, feature_index = 1 : "
     "i64} : "
     "(tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<4x8xf32>"},
    {"%0:3 = \"stablehlo.batch_norm_grad\"(%r, %v, %v, %v, %r) <{epsilon = 1.0 : f32, feature_index = 1 : "
     "i64}> : "
     "(tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, "
     "tensor<8xf32>, tensor<8xf32>)",
     "%0:3 = \"stablehlo.batch_norm_grad\"(%r, %v, %v, %v, %r) {epsilon = 1.0 : f32, feature_index = 1 : "
     "i64} : "
     "(tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, "
     "tensor<8xf32>, tensor<8xf32>)"},
    {"%0 = \"stablehlo.collective_permute\"(%v) <{source_target_pairs = dense<[[0, 1], [1, 0]]> : "
     "tensor<2x2xi64>, "
     "channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>}> : (tensor<8xf32>) -> tensor<8xf32>",
     "%0 = \"stablehlo.collective_permute\"(%v) {source_target_pairs = dense<[[0, 1], [1, 0]]> : "
     "tensor<2x2xi64>, "
     "channel_id = 3 : i64} : (tensor<8xf32>) -> tensor<8xf32>"},
    {"%0 = \"stablehlo.collective_broadcast\"(%v) <{replica_groups = dense<[[2, 0, 1]]> : tensor<1x3xi64>}> "
     ": "
     "(tensor<8xf32>) -> tensor<8xf32>",
     "%0 = \"stablehlo.collective_broadcast\"(%v) {replica_groups = dense<[[2, 0, 1]]> : tensor<1x3xi64>} : "
     "(tensor<8xf32>) -> tensor<8xf32>"},
    {"%0 = \"stablehlo.all_gather\"(%v) <{all_gather_dim = 0 : i64, replica_groups = dense<> : "
     "tensor<0x0xi64>}> : "
     "(tensor<8xf32>) -> tensor<24xf32>",
     "%0 = \"stablehlo.all_gather\"(%v) {all_gather_dim = 0 : i64, replica_groups = dense<> : "
     "tensor<0x2xi64>, "
     "use_global_device_ids = false} : (tensor<8xf32>) -> tensor<24xf32>"},
    {"%0 = \"stablehlo.triangular_solve\"(%m, %r) <{left_side = true, lower = true, transpose_a = "
     "#stablehlo<transpose ADJOINT>, unit_diagonal}> : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>",
     "%0 = \"stablehlo.triangular_solve\"(%m, %r) {left_side = true, lower = true, transpose_a = "
     "#stablehlo<transpose "
     "ADJOINT>, unit_diagonal = true} : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>"},
    {"%0 = stablehlo.bitcast_convert %v : (tensor<8xf32>) -> tensor<8x2xbf16>\n"
     "%1 = stablehlo.bitcast_convert %0 : (tensor<8x2xbf16>) -> tensor<8xi32>",
     "%0 = \"stablehlo.bitcast_convert\"(%v) : (tensor<8xf32>) -> tensor<8x2xbf16>\n"
     "%1 = \"stablehlo.bitcast_convert\"(%0) : (tensor<8x2xbf16>) -> tensor<8xi32>"},
    {"%0 = stablehlo.exponential %v {result_accuracy = #stablehlo.result_accuracy<atol = 1.0e-05, mode = "
     "TOLERANCE>} : "
     "tensor<8xf32>",
     "%0 = \"stablehlo.exponential\"(%v) {x = unit, y = !stablehlo.token, z = (i32) -> (f32), w = "
     "affine_set<(d0) : "
     "(d0 - 1 >= 0, 3 < d0)>} : (tensor<8xf32>) -> tensor<8xf32>"},
};

static void custom_is_generic(void **state)
{
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct arena ARENA_CLEANUP arena = {0};
        struct str custom = printed(forms[i].custom, &arena), generic = printed(forms[i].generic, &arena);
        if (!str_equal(custom, generic))
            fail_msg("%s\n\n" STR_FORMAT "\n\n" STR_FORMAT, forms[i].custom, STR_ARG(custom),
                     STR_ARG(generic));
    }
}

/* Attributes that the print does not tell apart from their defaults are in the union. */
static void unions(void **state)
{
    char text[4096];
    struct ir_module *module =
        text_module(text_function(text, sizeof text, arguments,
                                  "%0 = stablehlo.convolution(%img, %w) dim_numbers = [b, 0, 1, f]x[1, 0, i, "
                                  "o]->[f, 0, 1, b], window = {stride = "
                                  "[1, 2], pad = [[1, 2], [0, -1]], lhs_dilate = [1, 2], reverse = [false, "
                                  "true]} : (tensor<1x4x4x1xf32>, "
                                  "tensor<3x3x1x1xf32>) -> tensor<1x5x2x1xf32>\n"
                                  "\"stablehlo.custom_call\"(%m, %m) <{call_target_name = "
                                  "\"check.expect_close\"}> {max_ulp_difference = 7 : "
                                  "ui64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> ()\n"
                                  "stablehlo.custom_call @note() {backend_config = \"a\\22\\0A\\\\b\", "
                                  "has_side_effect = true} : () -> ()"));
    const union ir_attributes *a = &module_op(module, IR_OP_CONVOLUTION)->attributes;
    assert_int_equal(a->conv.window.sizes.items[0], 3);
    assert_int_equal(a->conv.window.strides.items[1], 2);
    assert_int_equal(a->conv.window.base_dilations.items[1], 2);
    assert_int_equal(a->conv.window.window_dilations.items[1], 1);
    assert_int_equal(a->conv.window.pad_high[0], 2);
    assert_int_equal(a->conv.window.pad_high[1], -1);
    assert_true(a->conv.window.reversal[1] && !a->conv.window.reversal[0]);
    assert_int_equal(a->conv.kernel_spatial.items[0], 1);
    assert_int_equal(a->conv.output_batch, 3);
    assert_int_equal(a->conv.output_feature, 0);
    a = &module_op(module, IR_OP_EXPECT_CLOSE)->attributes;
    assert_true(a->expect.max_ulp == 7 && a->expect.min_ulp == 0 && !a->expect.constant);
    a = &module_op(module, IR_OP_CUSTOM_CALL)->attributes;
    assert_true(str_is(a->custom.backend_config, "a\"\n\\b") && a->custom.has_side_effect);
    ir_module_free(module);
}

static void calls(void **state)
{
    struct ir_module *module = text_module(
        "func.func @main(%x: tensor<f32>) -> tensor<f32> {\n"
        "%0 = call @\"f.1\"(%x) : (tensor<f32>) -> tensor<f32>\n"
        "%1 = func.call @\"f.1\"(%0) : (tensor<f32>) -> tensor<f32>\n"
        "%2 = stablehlo.composite \"a.b\" %1 {composite_attributes = {n = 1 : i64}, decomposition = "
        "@\"f.1\", version = 1 "
        ": i32} : (tensor<f32>) -> tensor<f32>\n"
        "func.return %2 : tensor<f32>\n}\n"
        "func.func private @\"f.1\"(%x: tensor<f32>) -> tensor<f32> {\nreturn %x : tensor<f32>\n}\n");
    const struct ir_op *op = ir_function(module, STR("main"))->body.first;
    for (int i = 0; i < 3; i++, op = op->next) {
        assert_int_equal(op->kind, IR_OP_CALL);
        assert_ptr_equal(op->attributes.call.callee, ir_function(module, STR("f.1")));
    }
    ir_module_free(module);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(custom_is_generic),
        cmocka_unit_test(unions),
        cmocka_unit_test(calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

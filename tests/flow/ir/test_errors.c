/* Texts that the parser and the verifier refuse, and the place that each message names. */
#include "flow/ir/texts.h"

/* The failure of a text, of the parser or the verifier. */
static int text_failure(const char *text, struct error *error)
{
    struct ir_module *module = NULL;
    int code = ir_parse(str_from(text), "t", &module, error);
    if (code == 0)
        code = ir_verify(module, error);
    ir_module_free(module);
    return code;
}

static const struct {
    const char *text;
    int code;
    const char *error;
} texts[] = {
    {"oops", ERROR_UNSUPPORTED, "t:1:1: oops outside of a function is not supported"},
    {"module {", ERROR_INVALID, "t:1:9: expected module or func.func, got the end of the text"},
    {"module {}\nmodule {}", ERROR_UNSUPPORTED,
     "t:2:1: more than one module: separate them by lines of \"// -----\""},
    {"module attributes {mhlo.num_replicas = 0 : i32} {}", ERROR_INVALID,
     "t:1:40: mhlo.num_replicas: expected a number from 1 to 1048576"},
    {"func.func @a()", ERROR_UNSUPPORTED,
     "t:1:11: function @a has no body: external functions are not supported"},
    {"func.func @a() {\nreturn\n}\nfunc.func @a() {\nreturn\n}", ERROR_INVALID,
     "t:4:11: function @a is defined already"},
    {"func.func @\"a\\22\"() {\nreturn\n}", ERROR_UNSUPPORTED,
     "t:1:11: names with quotes, backslashes or control characters are not supported"},
    {"func.func @a(%x: tensor<f32>, %x: tensor<f32>) {\nreturn\n}", ERROR_INVALID,
     "t:1:31: %x is defined already"},
    {"func.func @a() {\n  return %x : tensor<f32>\n}", ERROR_INVALID, "t:2:10: %x is not defined here"},
    {"func.func @a(%x: tensor<f32>) {\n  return %x#1 : tensor<f32>\n}", ERROR_INVALID,
     "t:2:10: %x has 1 values, not a number 1"},
    {"func.func @a() {\n  call @b() : () -> ()\n  return\n}", ERROR_INVALID,
     "t:2:8: function @b is not defined"},
    {"func.func @a() {\n  call @a() : () -> ()\n  return\n}", ERROR_INVALID,
     "t:1:11: function @a: calls of it form a circle: recursion is not supported"},
    {"func.func @a() {\n}", ERROR_INVALID, "t:1:11: function @a: a block does not end with a return"},
    {"func.func @a() {\nreturn\nreturn\n}", ERROR_INVALID, "t:2:1: return: operations follow the return"},
    {"func.func @a() -> tensor<f32> {\n return\n}", ERROR_INVALID,
     "t:2:2: return: 0 values returned, but @a has 1 results"},
    {"func.func @a(%x: tensor<f32>) -> tensor<i32> {\n return %x : tensor<f32>\n}", ERROR_INVALID,
     "t:2:2: return: value 0 has type tensor<f32>, but @a returns tensor<i32>"},
    {"func.func @a(%x: tensor<f32>) {\n return %x : tensor<i32>\n}", ERROR_INVALID,
     "t:2:2: return: operand 0 has type tensor<f32>, not tensor<i32>"},
    {"func.func @a(%x: tensor<4x?xf32>) {\nreturn\n}", ERROR_UNSUPPORTED,
     "t:1:27: dynamic dimensions are not supported"},
    {"func.func @a(%x: tensor<*xf32>) {\nreturn\n}", ERROR_UNSUPPORTED,
     "t:1:25: unranked tensors are not supported"},
    {"func.func @a(%x: tensor<4x!quant.uniform<i8:f32, 1.0>>) {\nreturn\n}", ERROR_UNSUPPORTED,
     "t:1:27: element type quant.uniform is not supported"},
    {"func.func @a(%x: tuple<tensor<f32>>) {\nreturn\n}", ERROR_UNSUPPORTED,
     "t:1:18: type tuple is not supported"},
    {"func.func @a() {\n %0 = \"stablehlo.get_dimension_size\"() : () -> tensor<i32>\nreturn\n}",
     ERROR_UNSUPPORTED, "t:2:7: operation stablehlo.get_dimension_size is not supported"},
    {"func.func @a() {\n %0 = stablehlo.dynamic_iota %x, dim = 0 : (tensor<1xi32>) -> "
     "tensor<?xi32>\nreturn\n}",
     ERROR_UNSUPPORTED, "t:2:7: operation stablehlo.dynamic_iota is not supported"},
    {"func.func @a() {\n %0 = arith.constant 1 : i32\nreturn\n}", ERROR_UNSUPPORTED,
     "t:2:7: operation arith.constant is not supported"},
    {"func.func @a() {\n^bb0:\nreturn\n}", ERROR_UNSUPPORTED,
     "t:2:1: regions of several blocks are not supported"},
    {"func.func @a() {\n \"stablehlo.add\"()[^bb1] : () -> ()\nreturn\n}", ERROR_UNSUPPORTED,
     "t:2:19: branches between blocks are not supported"},
    {"func.func @a() {\n %0:2 = stablehlo.partition_id : tensor<ui32>\nreturn\n}", ERROR_INVALID,
     "t:2:2: stablehlo.partition_id has 1 results, but 2 are named"},
    {"func.func @a() {\n %0 = stablehlo.iota : tensor<2xi32>\nreturn\n}", ERROR_INVALID,
     "t:2:7: stablehlo.iota: attribute iota_dimension: is missing"},
    {"func.func @a() {\n %0 = stablehlo.iota dim = x : tensor<2xi32>\nreturn\n}", ERROR_INVALID,
     "t:2:28: stablehlo.iota: attribute iota_dimension: expected an integer"},
    {"func.func @a() {\n %0 = stablehlo.constant dense_resource<x> : tensor<2xi32>\nreturn\n}",
     ERROR_UNSUPPORTED, "t:2:26: dense_resource<...> is not supported"},
    {"func.func @a() attributes {x = \"unclosed}\n{\nreturn\n}", ERROR_INVALID,
     "t:1:32: expected an attribute's value, got a stray character"},
    {"func.func @a() {\n \"stablehlo.custom_call\"() <{n = 99999999999999999999}> : () -> ()\n}", ERROR_LIMIT,
     "t:2:34: the number is too large"},
    {"func.func @a(%x: tensor<f32>) {\n %0 = stablehlo.add %x, %x : tensor<f32>, tensor<f32>\nreturn\n}",
     ERROR_INVALID, "t:2:7: stablehlo.add: expected one type, got 2"},
    {"func.func @a(%x: tensor<f32>) {\n %0 = stablehlo.add %x, %x foo : tensor<f32>\nreturn\n}",
     ERROR_INVALID, "t:2:28: expected ':', got 'foo'"},
    {"func.func @a(%x: tensor<f32>) {\n %0 = stablehlo.add %x, %x, foo : tensor<f32>\nreturn\n}",
     ERROR_INVALID, "t:2:29: stablehlo.add: 'foo' is unexpected"},
    {"func.func @a(%x: tensor<f32>) {\n %0 = stablehlo.add %x, %x : (tensor<f32>) -> tensor<f32>\nreturn\n}",
     ERROR_INVALID, "t:2:7: stablehlo.add: 2 operands, but 1 operand types"},
    {"func.func @a(%x: tensor<f32>) {\n %0 = stablehlo.compare XX, %x, %x : (tensor<f32>, tensor<f32>) -> "
     "tensor<i1>\nreturn\n}",
     ERROR_INVALID, "t:2:25: stablehlo.compare: attribute comparison_direction: is none of the known words"},
    {"func.func @a(%x: tensor<f32>) {\n %0 = stablehlo.reduce_precision %x, format = e5 : "
     "tensor<f32>\nreturn\n}",
     ERROR_INVALID,
     "t:2:47: stablehlo.reduce_precision: attribute format: expected e and the exponent's bits, m and the "
     "mantissa's bits"},
    {"func.func @a(%x: tensor<f32>) {\n %0 = stablehlo.reduce(%x init: %x), (%x init: %x) applies "
     "stablehlo.add across dimensions = [] : (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> "
     "(tensor<f32>, tensor<f32>)\nreturn\n}",
     ERROR_INVALID, "t:2:60: 'applies' needs one value and one initial value"},
    {"func.func @a(%x: tensor<f32>) {\n %0 = stablehlo.while(%y = %x) : tensor<f32>, tensor<f32>\nreturn\n}",
     ERROR_INVALID, "t:2:7: stablehlo.while: 1 operands, but 2 types"},
    {"func.func @a(%x: tensor<1x4x4x1xf32>) {\n %0 = stablehlo.convolution(%x, %x) dim_numbers = [b, 0, 0, "
     "f]x[0, 1, i, o]->[b, 0, 1, f], window = {} : (tensor<1x4x4x1xf32>, tensor<1x4x4x1xf32>) -> "
     "tensor<1xf32>\nreturn\n}",
     ERROR_INVALID,
     "t:2:58: stablehlo.convolution: attribute dimension_numbers: each list has its two letters and the "
     "numbers of the spatial dimensions once"},
    {"func.func @a(%x: tensor<8xf32>) {\n %0 = \"stablehlo.slice\"(%x) <{start_indices = array<i64: 1>, "
     "limit_indices = array<i64: 1>, strides = \"x\"}> : (tensor<8xf32>) -> tensor<8xf32>\nreturn\n}",
     ERROR_INVALID, "t:2:103: stablehlo.slice: attribute strides: expected a list of integers"},
    {"func.func @a(%x: tensor<complex<f16>>) {\nreturn\n}", ERROR_UNSUPPORTED,
     "t:1:33: type complex<f16> is not supported"},
    {"func.func @a(%x tensor<f32>) {\nreturn\n}", ERROR_INVALID, "t:1:17: expected ':', got 'tensor'"},
    {"func.func @a() {\n return loc(\"x\"\n}", ERROR_INVALID, "t:2:12: this bracket is not closed"},
    {"func.func @a() {\n \"interpreter.run_parallel\"() {programs = [[@a], [@a, @a]]} : () -> ()\n return\n}",
     ERROR_INVALID, "t:2:50: interpreter.run_parallel: attribute programs: expected lists of equal length"},
    {"\"func.func\"() ({\n}) {sym_name = \"a\"} : () -> ()", ERROR_INVALID,
     "t:1:1: function @a does not end with a return"},
    {"func.func @a() {\n \"x.\xFF\x01y\"() : () -> ()\nreturn\n}", ERROR_UNSUPPORTED,
     "t:2:2: operation x.??y is not supported"},
    {"func.func @a(%x: tensor<8xf32>) {\n %0 = \"stablehlo.slice\"(%x) <{start_indices = dense<0> : "
     "tensor<33xi64>, limit_indices = array<i64: 1>, strides = array<i64: 1>}> : (tensor<8xf32>) -> "
     "tensor<8xf32>\nreturn\n}",
     ERROR_INVALID, "t:2:47: stablehlo.slice: attribute start_indices: expected a list of integers"},
};

static void whole_texts(void **state)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct error error = {0};
        assert_int_equal(text_failure(texts[i].text, &error), texts[i].code);
        assert_string_equal(error.text, texts[i].error);
    }
}

#define SCALAR_BODY(op)                                                                                      \
    "({\n^bb0(%a: tensor<f32>, %b: tensor<f32>):\n%x = stablehlo." op " %a, %b : tensor<f32>\n"              \
    "stablehlo.return %x : tensor<f32>\n})"

/* One operation on line 2, column 6, and the rule which it breaks. */
static const struct {
    const char *op, *error;
} rules[] = {
    {"stablehlo.add %m, %v : tensor<4x4xf32>",
     "stablehlo.add: operand 1 has type tensor<8xf32>, expected tensor<4x4xf32>"},
    {"\"stablehlo.add\"(%m) : (tensor<4x4xf32>) -> tensor<4x4xf32>", "stablehlo.add: 1 operands, expected 2"},
    {"stablehlo.and %m, %m : tensor<4x4xf32>",
     "stablehlo.and: operand 0 has elements of type f32, which the operation does not take"},
    {"stablehlo.tanh %n : tensor<4xi32>",
     "stablehlo.tanh: operand 0 has elements of type i32, which the operation does not take"},
    {"stablehlo.negate %m : tensor<4x5xf32>",
     "stablehlo.negate: result 0 has type tensor<4x5xf32>, expected tensor<4x4xf32>"},
    {"stablehlo.compare GT, %c, %c : (tensor<4x8xcomplex<f32>>, tensor<4x8xcomplex<f32>>) -> tensor<4x8xi1>",
     "stablehlo.compare: complex numbers are compared by EQ and NE alone"},
    {"stablehlo.compare GT, %n, %n, FLOAT : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>",
     "stablehlo.compare: elements of type i32 cannot be compared so"},
    {"stablehlo.select %n, %m, %m : tensor<4xi32>, tensor<4x4xf32>",
     "stablehlo.select: operand 0 has type tensor<4xi32>, expected tensor<4x4xi1>"},
    {"stablehlo.bitcast_convert %m : (tensor<4x4xf32>) -> tensor<4x4xi8>",
     "stablehlo.bitcast_convert: result 0 has type tensor<4x4xi8>, expected tensor<4x4x4xi8>"},
    {"stablehlo.broadcast_in_dim %v, dims = [2] : (tensor<8xf32>) -> tensor<2x8xf32>",
     "stablehlo.broadcast_in_dim: broadcast_dimensions is 2, expected a number from 0 to 1"},
    {"stablehlo.broadcast_in_dim %v, dims = [0] : (tensor<8xf32>) -> tensor<2x8xf32>",
     "stablehlo.broadcast_in_dim: dimension 0 of size 8 cannot become one of size 2"},
    {"stablehlo.concatenate %v, %v, dim = 0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<15xf32>",
     "stablehlo.concatenate: result 0 has type tensor<15xf32>, expected tensor<16xf32>"},
    {"stablehlo.transpose %m, dims = [0, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>",
     "stablehlo.transpose: permutation names dimension 0 twice"},
    {"stablehlo.reshape %m : (tensor<4x4xf32>) -> tensor<15xf32>",
     "stablehlo.reshape: 16 elements cannot be 15"},
    {"stablehlo.slice %v [3:9] : (tensor<8xf32>) -> tensor<6xf32>",
     "stablehlo.slice: 3:9 is no part of dimension 0 of size 8"},
    {"stablehlo.slice %v [3:6:0] : (tensor<8xf32>) -> tensor<6xf32>",
     "stablehlo.slice: strides has the number 0, which is out of range"},
    {"stablehlo.pad %v, %z, low = [-5], high = [-5], interior = [0] : (tensor<8xf32>, tensor<f32>) -> "
     "tensor<0xf32>",
     "stablehlo.pad: the padding of dimension 0 leaves no valid size"},
    {"stablehlo.dynamic_slice %v, %i, sizes = [9] : (tensor<8xf32>, tensor<i32>) -> tensor<9xf32>",
     "stablehlo.dynamic_slice: slice_sizes has 9 for dimension 0 of size 8"},
    {"stablehlo.dynamic_update_slice %v, %m, %i : (tensor<8xf32>, tensor<4x4xf32>, tensor<i32>) -> "
     "tensor<8xf32>",
     "stablehlo.dynamic_update_slice: the update has another rank or element type than the operand"},
    {"stablehlo.dot_general %m, %r, contracting_dims = [1] x [1] : (tensor<4x4xf32>, tensor<4x8xf32>) -> "
     "tensor<4x4xf32>",
     "stablehlo.dot_general: contracting dimensions 1 and 1 have sizes 4 and 8"},
    {"stablehlo.dot_general %m, %r, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x8xf32>) -> "
     "tensor<8x4xf32>",
     "stablehlo.dot_general: result 0 has type tensor<8x4xf32>, expected tensor<4x8xf32>"},
    {"stablehlo.convolution(%img, %w) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f], window = {} "
     "{feature_group_count = 2 : i64} : (tensor<1x4x4x1xf32>, tensor<3x3x1x1xf32>) -> tensor<1x2x2x1xf32>",
     "stablehlo.convolution: feature_group_count 2 does not divide the input and output features"},
    {"stablehlo.cholesky %r : tensor<4x8xf32>",
     "stablehlo.cholesky: operand 0 is no square matrix, or batch of them"},
    {"stablehlo.fft %c, type = FFT, length = [4] : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xcomplex<f32>>",
     "stablehlo.fft: fft_length 4 does not fit dimension 1 of size 8"},
    {"\"stablehlo.reduce\"(%v, %z) <{dimensions = array<i64: 1>}> " SCALAR_BODY(
         "add") " : (tensor<8xf32>, tensor<f32>) -> tensor<f32>",
     "stablehlo.reduce: dimensions is 1, expected a number from 0 to 0"},
    {"\"stablehlo.reduce\"(%v, %i) <{dimensions = array<i64: 0>}> " SCALAR_BODY(
         "add") " : (tensor<8xf32>, tensor<i32>) -> tensor<f32>",
     "stablehlo.reduce: operand 1 has type tensor<i32>, expected tensor<f32>"},
    {"\"stablehlo.reduce_window\"(%v, %z) <{window_dimensions = array<i64: 0>}> " SCALAR_BODY(
         "add") " : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>",
     "stablehlo.reduce_window: window_dimensions has the number 0, which is out of range"},
    {"\"stablehlo.sort\"(%v) <{dimension = 0 : i64}> " SCALAR_BODY(
         "add") " : (tensor<8xf32>) -> tensor<8xf32>",
     "stablehlo.sort: value 0 that region 0 returns has type tensor<f32>, expected tensor<i1>"},
    {"\"stablehlo.gather\"(%r, %n) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], "
     "collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 4, "
     "2>}> : (tensor<4x8xf32>, tensor<4xi32>) -> tensor<4x4xf32>",
     "stablehlo.gather: slice_sizes has 2 for dimension 1 of size 8"},
    {"\"stablehlo.gather\"(%r, %n) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], "
     "collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 0>, slice_sizes = array<i64: 4, "
     "1>}> : (tensor<4x8xf32>, tensor<4xi32>) -> tensor<4xf32>",
     "stablehlo.gather: the index map has 1 dimensions, an index has 4"},
    {"\"stablehlo.scatter\"(%r, %n, %v) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims "
     "= [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1], index_vector_dim = "
     "1>}> " SCALAR_BODY("add") " : (tensor<4x8xf32>, tensor<4xi32>, tensor<8xf32>) -> tensor<4x8xf32>",
     "stablehlo.scatter: rank 1, expected 2"},
    {"stablehlo.rng_bit_generator %n, algorithm = DEFAULT : (tensor<4xi32>) -> (tensor<4xi32>, "
     "tensor<4xui32>)",
     "stablehlo.rng_bit_generator: the state is no vector of ui64"},
    {"\"stablehlo.if\"(%p) ({\nstablehlo.return %m : tensor<4x4xf32>\n}, {\nstablehlo.return %v : "
     "tensor<8xf32>\n}) : (tensor<i1>) -> tensor<4x4xf32>",
     "stablehlo.if: value 0 that region 1 returns has type tensor<8xf32>, expected tensor<4x4xf32>"},
    {"\"stablehlo.case\"(%p) ({\nstablehlo.return %m : tensor<4x4xf32>\n}) : (tensor<i1>) -> tensor<4x4xf32>",
     "stablehlo.case: operand 0 has type tensor<i1>, expected tensor<i32>"},
    {"stablehlo.while(%a = %z) : tensor<f32> cond {\nstablehlo.return %p : tensor<i1>\n} do "
     "{\nstablehlo.return %v : tensor<8xf32>\n}",
     "stablehlo.while: value 0 that region 1 returns has type tensor<8xf32>, expected tensor<f32>"},
    {"\"stablehlo.all_gather\"(%v) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : "
     "tensor<1x2xi64>}> : (tensor<8xf32>) -> tensor<8xf32>",
     "stablehlo.all_gather: result 0 has type tensor<8xf32>, expected tensor<16xf32>"},
    {"\"stablehlo.all_reduce\"(%v) <{replica_groups = dense<[[0, 0]]> : tensor<1x2xi64>}> " SCALAR_BODY(
         "add") " : (tensor<8xf32>) -> tensor<8xf32>",
     "stablehlo.all_reduce: replica_groups names an id twice"},
    {"\"stablehlo.all_reduce\"(%v) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, "
     "use_global_device_ids}> " SCALAR_BODY("add") " : (tensor<8xf32>) -> tensor<8xf32>",
     "stablehlo.all_reduce: use_global_device_ids needs a channel above 0"},
    {"\"stablehlo.collective_permute\"(%v) <{source_target_pairs = dense<[[0, 1], [0, 2]]> : "
     "tensor<2x2xi64>}> : (tensor<8xf32>) -> tensor<8xf32>",
     "stablehlo.collective_permute: source_target_pairs names a source or a target twice"},
    {"\"stablehlo.reduce_scatter\"(%v) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1, 2]]> : "
     "tensor<1x3xi64>}> " SCALAR_BODY("add") " : (tensor<8xf32>) -> tensor<8xf32>",
     "stablehlo.reduce_scatter: size 8 of dimension 0 is no multiple of 3"},
    {"stablehlo.broadcast_in_dim %v, dims = [] : (tensor<8xf32>) -> tensor<2x8xf32>",
     "stablehlo.broadcast_in_dim: broadcast_dimensions has 0 numbers, expected 1"},
    {"stablehlo.bitcast_convert %c : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xf64>",
     "stablehlo.bitcast_convert: complex numbers have only complex bits"},
    {"stablehlo.dynamic_slice %m, %i, sizes = [1, 1] : (tensor<4x4xf32>, tensor<i32>) -> tensor<1x1xf32>",
     "stablehlo.dynamic_slice: 1 start indices, expected 2"},
    {"stablehlo.dot_general %m, %r, contracting_dims = [1, 0] x [0] : (tensor<4x4xf32>, tensor<4x8xf32>) -> "
     "tensor<4x8xf32>",
     "stablehlo.dot_general: 2 and 1 contracting dimensions"},
    {"stablehlo.dot_general %m, %m, batching_dims = [0] x [0], contracting_dims = [0] x [0] : "
     "(tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4x4xf32>",
     "stablehlo.dot_general: dimension 0 is both batching and contracting"},
    {"stablehlo.dot_general %m, %c, contracting_dims = [1] x [0] : (tensor<4x4xf32>, "
     "tensor<4x8xcomplex<f32>>) -> tensor<4x8xf32>",
     "stablehlo.dot_general: operand 1 has elements of type complex<f32>, which the operation does not take"},
    {"stablehlo.convolution(%m, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} : "
     "(tensor<4x4xf32>, tensor<3x3x1x1xf32>) -> tensor<4x4xf32>",
     "stablehlo.convolution: dimension numbers for rank 4, expected 2"},
    {"stablehlo.convolution(%img, %w) dim_numbers = [b, 0, 1, f]x[i, 1, 0, o]->[b, 0, 1, f], window = {} : "
     "(tensor<1x4x4x1xf32>, tensor<3x3x1x1xf32>) -> tensor<1x4x2x1xf32>",
     "stablehlo.convolution: the kernel has 3 input features, expected 1"},
    {"stablehlo.convolution(%img, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = "
     "[[-9, 0], [0, 0]]} : (tensor<1x4x4x1xf32>, tensor<3x3x1x1xf32>) -> tensor<1x4x2x1xf32>",
     "stablehlo.convolution: the window leaves no valid size for spatial dimension 0"},
    {"\"stablehlo.triangular_solve\"(%m, %v) <{left_side = true}> : (tensor<4x4xf32>, tensor<8xf32>) -> "
     "tensor<8xf32>",
     "stablehlo.triangular_solve: the two operands differ in rank or element type"},
    {"\"stablehlo.triangular_solve\"(%m, %r) <{left_side = false}> : (tensor<4x4xf32>, tensor<4x8xf32>) -> "
     "tensor<4x8xf32>",
     "stablehlo.triangular_solve: operand 1 has size 8 in dimension 1, expected 4"},
    {"stablehlo.fft %c, type = FFT, length = [] : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xcomplex<f32>>",
     "stablehlo.fft: fft_length has 0 numbers"},
    {"\"stablehlo.reduce\"(%v, %v, %z) <{dimensions = array<i64: 0>}> " SCALAR_BODY(
         "add") " : (tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> tensor<f32>",
     "stablehlo.reduce: 3 operands and 1 results: expected values and as many initial values"},
    {"\"stablehlo.map\"(%v, %v) <{dimensions = array<i64: 1>}> " SCALAR_BODY(
         "add") " : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>",
     "stablehlo.map: dimensions is not 0, 1, 2, ..."},
    {"\"stablehlo.batch_norm_inference\"(%r, %v, %v, %v, %n) <{epsilon = 1.0 : f32, feature_index = 1 : "
     "i64}> : (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<4xi32>) -> "
     "tensor<4x8xf32>",
     "stablehlo.batch_norm_inference: operand 4 has type tensor<4xi32>, expected tensor<8xf32>"},
    {"\"stablehlo.gather\"(%r, %n) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], "
     "collapsed_slice_dims = [0, 1], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: "
     "1, 1>}> : (tensor<4x8xf32>, tensor<4xi32>) -> tensor<4x4xf32>",
     "stablehlo.gather: 1 window, 2 collapsed and 0 batching dimensions are not the operand's 2"},
    {"\"stablehlo.gather\"(%r, %n) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], "
     "operand_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 1, "
     "1>}> : (tensor<4x8xf32>, tensor<4xi32>) -> tensor<4x1xf32>",
     "stablehlo.gather: the operand has 1 batching dimensions, the indices have 0"},
    {"\"stablehlo.scatter\"(%r, %n) <{scatter_dimension_numbers = #stablehlo.scatter<index_vector_dim = "
     "1>}> " SCALAR_BODY("add") " : (tensor<4x8xf32>, tensor<4xi32>) -> tensor<4x8xf32>",
     "stablehlo.scatter: 2 operands, expected at least 3"},
    {"\"stablehlo.all_to_all\"(%v) <{split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 3 "
     ": i64, replica_groups = dense<[[0, 1, 2]]> : tensor<1x3xi64>}> : (tensor<8xf32>) -> tensor<8xf32>",
     "stablehlo.all_to_all: size 8 of dimension 0 is no multiple of 3"},
    {"\"stablehlo.all_to_all\"(%v) <{split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 2 "
     ": i64, replica_groups = dense<[[0, 1, 2]]> : tensor<1x3xi64>}> : (tensor<8xf32>) -> tensor<8xf32>",
     "stablehlo.all_to_all: split_count is 2, and a group has 3 members"},
    {"\"stablehlo.all_reduce\"(%v) <{replica_groups = dense<[[0, 7]]> : tensor<1x2xi64>}> " SCALAR_BODY(
         "add") " : (tensor<8xf32>) -> tensor<8xf32>",
     "stablehlo.all_reduce: replica_groups has the id 7 of 2"},
};

static void operation_rules(void **state)
{
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++) {
        struct error error = {0};
        char text[4096], wanted[512];
        bool two = strstr(rules[i].op, "rng_") != NULL;
        snprintf(
            text, sizeof text,
            "func.func @main(%%m: tensor<4x4xf32>, %%c: tensor<4x8xcomplex<f32>>, %%r: tensor<4x8xf32>, %%v: "
            "tensor<8xf32>, %%p: tensor<i1>, %%i: tensor<i32>, %%z: tensor<f32>, %%n: tensor<4xi32>, %%img: "
            "tensor<1x4x4x1xf32>, %%w: tensor<3x3x1x1xf32>) {\n%s = %s\nreturn\n}\n",
            two ? "%0:2" : "%0", rules[i].op);
        snprintf(wanted, sizeof wanted, "t:2:%d: %s", two ? 8 : 6, rules[i].error);
        assert_int_equal(text_failure(text, &error), ERROR_INVALID);
        assert_string_equal(error.text, wanted);
    }
}

/* Regions, attributes and chains of calls have limits, and the parser's stack with them. */
static void depth(void **state)
{
    struct buf BUF_CLEANUP text = {0};
    struct error error;
    buf_add_str(&text, STR("func.func @main(%p: tensor<i1>) {\n"));
    for (int i = 0; i < 100; i++)
        buf_add_str(&text, STR("\"stablehlo.if\"(%p) ({\n"));
    assert_int_equal(text_failure(text.data, &error), ERROR_LIMIT);
    assert_string_equal(error.text, "t:65:21: nested deeper than 64");
    buf_clear(&text);
    buf_add_str(&text, STR("module attributes {x = "));
    for (int i = 0; i < 100000; i++)
        buf_add_char(&text, '[');
    assert_int_equal(text_failure(text.data, &error), ERROR_LIMIT);
    assert_string_equal(error.text, "t:1:88: nested deeper than 64");
    buf_clear(&text);
    for (int i = 0; i < 100; i++) /* each function but the last calls the next from inside of a region */
        buf_printf(
            &text,
            "func.func @f%d(%%p: tensor<i1>) {\n\"stablehlo.if\"(%%p) ({\n%s%d%s\nstablehlo.return\n}, {\n"
            "stablehlo.return\n}) : (tensor<i1>) -> ()\nreturn\n}\n",
            i, i < 99 ? "call @f" : "//", i + 1, i < 99 ? "(%p) : (tensor<i1>) -> ()" : "");
    assert_int_equal(text_failure(text.data, &error), ERROR_INVALID);
    assert_string_equal(error.text,
                        "t:577:11: function @f64: more than 128 regions and calls inside of each other");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_texts),
        cmocka_unit_test(operation_rules),
        cmocka_unit_test(depth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

/* Ends of logs of further programs and libraries, a table a family: forms that the rules meet by what they
 * have in common with others. */
#include "signature_rows.h"

#define TRACE(last)                                                                                          \
    "Traceback (most recent call last):\n  File \"/app/train.py\", line 31, in <module>\n    main()\n" last  \
    "\n"
#define STEPS "step 7 loss 2.41\nstep 8 loss 2.40\n"

/* The words of a rank whose peers have failed, and not the rank itself. */
static const struct row peers_rows[] = {
    {TRACE("torch.distributed.DistBackendError: [7] is setting up NCCL communicator and retrieving "
           "ncclUniqueId "
           "from [0] via c10d key-value store by key '0', but store->get('0') got error: Connection reset by "
           "peer"),
     SIGNATURE_PEER},
    {TRACE("RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer "
           "[10.0.0.8]:41223"),
     SIGNATURE_PEER},
    {TRACE("RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:81] Timed out "
           "waiting "
           "1800000ms for recv operation to complete"),
     SIGNATURE_WATCHDOG},
    {TRACE(
         "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to "
         "connect to (node-0, 29500)."),
     SIGNATURE_PEER},
    {TRACE("RuntimeError: The server socket has failed to listen on any local network address. The server "
           "socket "
           "has failed to bind to [::]:29500 (errno: 98 - Address already in use)."),
     SIGNATURE_ADDRESS},
    {TRACE("torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d "
           "store "
           "has failed. See inner exception for details."),
     SIGNATURE_PEER},
    {TRACE("torch.distributed.elastic.rendezvous.api.RendezvousClosedError"), SIGNATURE_PEER},
    {"[rank2]:[E1128 09:00:00.1 ProcessGroupNCCL.cpp:542] [Rank 2] Collective WorkNCCL(SeqNum=5, "
     "OpType=BROADCAST, NumelIn=8, NumelOut=8, Timeout(ms)=600000) raised the following async exception: "
     "NCCL "
     "error: remote process exited or there was a network error, NCCL version 2.21.5\n",
     SIGNATURE_PEER},
    {"jax.errors.JaxRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id: PjRT_Client_Connect. This "
     "usually "
     "happens because a task triggered the barrier unexpectedly early, or too slow.\n",
     SIGNATURE_WATCHDOG},
    {"E1128 09:00:00.000000 77 coordination_service_agent.cc:332] Polled an error from coordination service "
     "(this can be an error from this or another task): UNAVAILABLE: Task /job:jax_worker/replica:0/task:3 "
     "heartbeat timeout. This indicates that the remote task has failed.\n",
     SIGNATURE_PEER},
    {"F1128 09:00:00.000000 77 client.h:80] Terminating process because the JAX distributed service detected "
     "fatal errors. This most likely indicates that another task died; see the other task logs for more "
     "details.\n",
     SIGNATURE_PEER},
    {"[node-3:4711] pml_ucx.c:419  Error: ucp_ep_create(proc=5) failed: Destination is unreachable\n",
     SIGNATURE_NETWORK},
    {"[1732442400.1] [node-3:4711:0] ib_mlx5_log.c:171  UCX  ERROR Transport retry count exceeded on "
     "mlx5_0:1/IB (synd 0x15 vend 0x81 hw_synd 0/0)\n",
     SIGNATURE_NETWORK},
    {TRACE("ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task."),
     SIGNATURE_PEER},
    {TRACE("torch.distributed.DistBackendError: [2] is setting up NCCL communicator and retrieving "
           "ncclUniqueId "
           "from [0] via c10d key-value store by key '0:1', but store->get('0:1') got error: wait timeout "
           "after "
           "600000ms, keys: /default_pg/0//cuda//0:1"),
     SIGNATURE_WATCHDOG},
};

static void peers(void **state)
{
    (void)state;
    CHECK_ROWS(peers_rows);
}

/* Memory of the host, as run-times and launchers name its end. */
static const struct row memory_rows[] = {
    {"slurmstepd: error: StepId=7.0 task 3 oom-killed\n", SIGNATURE_OOM},
    {"[5012.3] Memory cgroup out of memory: Killed process 99 (pt main thread) total-vm:1kB, anon-rss:1kB\n",
     SIGNATURE_OOM},
    {"Warning  OOMKilling  kubelet  System OOM encountered, victim process: python, pid: 4711\n",
     SIGNATURE_OOM},
    {"(raylet) 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed due to "
     "other "
     "reasons at node (ID: a, IP: 10.0.0.1)\n",
     SIGNATURE_OOM},
    {"lxc-container: container was killed by the kernel's OOM killer\n", SIGNATURE_OOM},
    {"Job <99> is killed: memory usage limit reached\n", SIGNATURE_OOM},
    {"nvidia-uvm: failed to allocate; terminate called after throwing an instance of "
     "'thrust::system::detail::bad_alloc'\n  what():  std::bad_alloc: cudaErrorMemoryAllocation: out of "
     "memory\n",
     SIGNATURE_CHIP_MEMORY},
    {TRACE("polars.exceptions.ComputeError: memory allocation of 812 bytes failed"), SIGNATURE_MEMORY},
    {"mmap failed: Cannot allocate memory\n", SIGNATURE_MEMORY},
    {"runtime: VirtualAlloc of 8192 bytes failed\nfatal error: out of memory\n", SIGNATURE_MEMORY},
    {"#\n# There is insufficient memory for the Java Runtime Environment to continue.\n", SIGNATURE_MEMORY},
};

static void memory(void **state)
{
    (void)state;
    CHECK_ROWS(memory_rows);
}

/* Languages and run-times beyond Python and C. */
static const struct row programs_rows[] = {
    {"Unhandled exception. System.InvalidOperationException: closed\n   at A.Main() in A.cs:line 3\n",
     SIGNATURE_TRACEBACK},
    {"ERROR: LoadError: BoundsError: attempt to access 3-element Vector{Int64} at index [7]\nStacktrace:\n "
     "[1] "
     "getindex\n",
     SIGNATURE_TRACEBACK},
    {"node:internal/process/promises:288\n            triggerUncaughtException(err, true);\n\nTypeError: "
     "Cannot "
     "read properties of undefined (reading 'x')\n    at main (/app/a.js:3:4)\n",
     SIGNATURE_TRACEBACK},
    {"thread 'tokio-runtime-worker' panicked at src/lib.rs:9:5:\ncalled `Option::unwrap()` on a `None` "
     "value\n",
     SIGNATURE_ABORT},
    {"thread '<unnamed>' (4711) panicked at src/lib.rs:9:5:\nexplicit panic\n", SIGNATURE_ABORT},
    {"fatal error: unexpected signal during runtime execution\n[signal SIGSEGV: segmentation violation "
     "code=0x1]\n",
     SIGNATURE_ABORT},
    {"terminate called after throwing an instance of 'c10::Error'\n  what():  Expected all tensors to be on "
     "the "
     "same device\n",
     SIGNATURE_ABORT},
    {"terminate called recursively\nAborted (core dumped)\n", SIGNATURE_ABORT},
    {"libc++abi: terminating due to uncaught exception of type std::runtime_error: x\n", SIGNATURE_ABORT},
    {"==77==ERROR: AddressSanitizer: stack-overflow on address 0x7ffe\n", SIGNATURE_ABORT},
    {"WARNING: ThreadSanitizer: data race (pid=7)\n" STEPS, SIGNATURE_NONE},
    {"a.c:3:5: runtime error: signed integer overflow: 2147483647 + 1 cannot be represented in type "
     "'int'\n" STEPS,
     SIGNATURE_NONE},
    {"free(): invalid next size (fast)\n", SIGNATURE_ABORT},
    {"malloc(): unaligned tcache chunk detected\n", SIGNATURE_ABORT},
    {"*** longjmp causes uninitialized stack frame ***: terminated\n", SIGNATURE_ABORT},
    {"Fatal error condition occurred in /aws-c-io/source/event_loop.c:72: aws_thread_launch() == "
     "AWS_OP_SUCCESS\nExiting Application\n",
     SIGNATURE_ABORT},
    {"python: symbol lookup error: /usr/lib/libfoo.so: undefined symbol: bar\n", SIGNATURE_ABORT},
    {"LLVM ERROR: Cannot select: intrinsic %llvm.nvvm.shfl.sync.bfly.i32\n", SIGNATURE_ABORT},
    {"train.py: error: unrecognized arguments: --lerning-rate\n", SIGNATURE_NONE},
    {TRACE("hydra.errors.ConfigCompositionException: Could not override 'x'."), SIGNATURE_TRACEBACK},
    {"E       assert 3 == 4\n", SIGNATURE_NONE},
    {"Error executing job with overrides: ['lr=3']\n" TRACE(
         "omegaconf.errors.ConfigAttributeError: Key 'x' is "
         "not in struct"),
     SIGNATURE_TRACEBACK},
    {"\x1b[31mTraceback (most recent call last):\x1b[0m\n  File \"a.py\", line 3, in "
     "<module>\n\x1b[1;31mKeyError\x1b[0m: "
     "'x'\n",
     SIGNATURE_TRACEBACK},
    {"\x1b]0;train\a\x1b[31;1mRuntimeError: \x1b[0mbad \x1b[4mshape\x1b[24m\n", SIGNATURE_TRACEBACK},
    {"\xe2\x95\xad\xe2\x94\x80 Traceback (most recent call last) \xe2\x94\x80\xe2\x95\xae\n\xe2\x94\x82 "
     "/app/a.py:3 in "
     "main \xe2\x94\x82\n\xe2\x95\xb0\xe2\x94\x80\xe2\x95\xaf\nZeroDivisionError: division by zero\n",
     SIGNATURE_TRACEBACK},
};

static void programs(void **state)
{
    (void)state;
    CHECK_ROWS(programs_rows);
}

/* Storage, names and services. */
static const struct row surroundings_rows[] = {
    {TRACE("OSError: [Errno 116] Stale file handle: '/data/ckpt'"), SIGNATURE_STORAGE},
    {TRACE("OSError: [Errno 30] Read-only file system: '/ckpt/7'"), SIGNATURE_STORAGE},
    {TRACE("OSError: [Errno 121] Remote I/O error: '/ckpt'"), SIGNATURE_STORAGE},
    {TRACE("OSError: [Errno 108] Cannot send after transport endpoint shutdown: '/lustre/x'"),
     SIGNATURE_STORAGE},
    {TRACE("OSError: [Errno 117] Structure needs cleaning: '/ckpt'"), SIGNATURE_STORAGE},
    {TRACE("OSError: Unable to synchronously open file (unable to lock file, errno = 11, error message = "
           "'Resource temporarily unavailable')"),
     SIGNATURE_STORAGE},
    {TRACE("OSError: [Errno 122] Disk quota exceeded: '/scratch/x'"), SIGNATURE_DISK_FULL},
    {"dd: error writing '/ckpt/x': No space left on device\n", SIGNATURE_DISK_FULL},
    {TRACE("socket.gaierror: [Errno -3] Temporary failure in name resolution"), SIGNATURE_NAME},
    {"wget: unable to resolve host address 'models.example.com'\n", SIGNATURE_NAME},
    {"dial tcp: lookup registry.example.com on 10.0.0.10:53: no such host\n", SIGNATURE_NAME},
    {TRACE("huggingface_hub.errors.HfHubHTTPError: 504 Server Error: Gateway Time-out for url: "
           "https://huggingface.co/api/models/x"),
     SIGNATURE_SERVICE},
    {TRACE(
         "botocore.exceptions.ClientError: An error occurred (SlowDown) when calling the PutObject operation "
         "(reached max retries: 4): Please reduce your request rate."),
     SIGNATURE_SERVICE},
    {TRACE("google.api_core.exceptions.ServiceUnavailable: 503 GET https://storage.googleapis.com/x"),
     SIGNATURE_SERVICE},
    {TRACE("wandb.errors.CommError: Run initialization has timed out after 90.0 sec."), SIGNATURE_SERVICE},
    {TRACE("azure.core.exceptions.ServiceResponseTimeoutError: read timeout"), SIGNATURE_SERVICE},
    {TRACE("botocore.exceptions.ClientError: An error occurred (AccessDenied) when calling the GetObject "
           "operation: Access Denied"),
     SIGNATURE_TRACEBACK},
    {TRACE("urllib3.exceptions.MaxRetryError: HTTPSConnectionPool(host='x', port=443): Max retries exceeded "
           "with "
           "url: /y (Caused by NameResolutionError(\"<c>: Failed to resolve 'x'\"))"),
     SIGNATURE_NAME},
    {TRACE("mlflow.exceptions.MlflowException: API request to https://x failed with exception "
           "HTTPSConnectionPool(host='x', port=443): Max retries exceeded with url: /api"),
     SIGNATURE_SERVICE},
};

static void surroundings(void **state)
{
    (void)state;
    CHECK_ROWS(surroundings_rows);
}

/* Chips of five makers, their drivers and their fabrics. */
static const struct row chips_rows[] = {
    {TRACE("torch.AcceleratorError: CUDA error: an illegal instruction was encountered"), SIGNATURE_CHIP},
    {TRACE("RuntimeError: CUDA error: misaligned address"), SIGNATURE_CHIP},
    {TRACE("RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx(handle)`"),
     SIGNATURE_CHIP},
    {TRACE("RuntimeError: cuDNN error: CUDNN_STATUS_MAPPING_ERROR"), SIGNATURE_CHIP},
    {TRACE("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
     SIGNATURE_CHIP_MEMORY},
    {TRACE("torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered"), SIGNATURE_CHIP_BROKEN},
    {TRACE("RuntimeError: CUDA error: unknown error"), SIGNATURE_CHIP},
    {TRACE("RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before "
           "calling NumCudaDevices() that might have already set an error? Error 802: system not yet "
           "initialized"),
     SIGNATURE_DRIVER},
    {TRACE("RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 804: forward compatibility was "
           "attempted on non supported HW"),
     SIGNATURE_DRIVER},
    {"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", SIGNATURE_DRIVER},
    {"Fabric\n    State                   : In Progress\n    Status                  : N/A\n",
     SIGNATURE_DRIVER},
    {TRACE("pynvml.NVMLError_GpuIsLost: GPU is lost"), SIGNATURE_CHIP_BROKEN},
    {TRACE("AssertionError: Torch not compiled with CUDA enabled"), SIGNATURE_TRACEBACK},
    {":0:rocdevice.cpp            :2982: 6548 us: Callback: Queue 0x7f aborting with error : "
     "HSA_STATUS_ERROR_EXCEPTION: An HSAIL operation resulted in a hardware exception. code: 0x1016\n",
     SIGNATURE_CHIP},
    {"Memory access fault by GPU node-2 (Agent handle: 0x55) on address 0x7f0000. Reason: Unknown.\n",
     SIGNATURE_CHIP},
    {TRACE("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB."), SIGNATURE_CHIP_MEMORY},
    {TRACE("RuntimeError: synStatus=26 [Generic failure] Device acquire failed."), SIGNATURE_CHIP_MISSING},
    {TRACE("RuntimeError: [Rank:0] FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::1073741824 "
           "(1024)MB"),
     SIGNATURE_CHIP_MEMORY},
    {TRACE("RuntimeError: [Rank:3] FATAL ERROR :: MODULE:PT_SYNHELPER workspace Allocation of size ::10 "
           "failed!"),
     SIGNATURE_CHIP_MEMORY},
    {TRACE("RuntimeError: Graph compile failed. synStatus=synStatus 26 [Generic failure]."), SIGNATURE_CHIP},
    {TRACE("RuntimeError: synchronize:/opt/x/NPUStream.cpp:507 NPU function error: "
           "aclrtSynchronizeStreamWithTimeout, error code is 507014"),
     SIGNATURE_CHIP},
    {TRACE("RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 64.00 GiB total capacity)"),
     SIGNATURE_CHIP_MEMORY},
    {TRACE("RuntimeError: ACL stream synchronize failed, error code:507054") "[ERROR] HBM MULTI BIT ECC "
                                                                             "error\n",
     SIGNATURE_CHIP_BROKEN},
    {"EI0002: [PID: 77] The wait execution of the Notify register times out. Reason: The Notify register has "
     "not received the Notify record from remote rank [3].\n",
     SIGNATURE_WATCHDOG},
    {"EI0006: Getting socket times out. Reason: Remote Rank did not send the data in time.\n",
     SIGNATURE_WATCHDOG},
    {"jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Attempting to allocate 16.00G. That was not "
     "possible. There are 12.00G free.; (0x0x0_HBM0)\n",
     SIGNATURE_CHIP_MEMORY},
    {"jax.errors.JaxRuntimeError: INTERNAL: Core halted unexpectedly: INTERNAL: Accelerator device halted "
     "prematurely, perhaps due to an on-device check-failure. Node 0 halted unexpectedly at tag:pc "
     "TensorCoreSequencer:1:0x199\n",
     SIGNATURE_CHIP},
    {"RuntimeError: Unable to initialize backend 'tpu': UNAVAILABLE: TPU initialization failed: Failed to "
     "find "
     "any TPU devices\n",
     SIGNATURE_CHIP_MISSING},
    {"jax.errors.JaxRuntimeError: UNAVAILABLE: The TPU is already in use by process with pid 4711.\n",
     SIGNATURE_CHIP},
    {TRACE("RuntimeError: level_zero backend failed with error: 20 (UR_RESULT_ERROR_DEVICE_LOST)"),
     SIGNATURE_CHIP_BROKEN},
    {TRACE("torch.OutOfMemoryError: XPU out of memory. Tried to allocate 2.00 GiB."), SIGNATURE_CHIP_MEMORY},
};

static void chips(void **state)
{
    (void)state;
    CHECK_ROWS(chips_rows);
}

/* Numbers that are none. */
static const struct row numbers_rows[] = {
    {TRACE("FloatingPointError: Minimum loss scale reached (0.0001). Your loss is probably exploding."),
     SIGNATURE_NUMERIC},
    {TRACE("AssertionError: Rank 3: found NaN in local grad norm in backward pass before data-parallel "
           "communication collective. Device: 3, node: n3"),
     SIGNATURE_NUMERIC},
    {TRACE("RuntimeError: Function 'LogSoftmaxBackward0' returned nan values in its 0th output."),
     SIGNATURE_NUMERIC},
    {TRACE("FloatingPointError: invalid value (nan) encountered in jit(mul)"), SIGNATURE_NUMERIC},
    {TRACE("ValueError: Loss became NaN at iteration 700"), SIGNATURE_NUMERIC},
    {TRACE("RuntimeError: gradients are not finite"), SIGNATURE_NUMERIC},
    {"step 7 loss 2.41\nstep 8 loss nan\nstep 9 loss nan\n", SIGNATURE_NUMERIC},
    {" [2026-11-28 09:00:00] iteration      200/ 1000 | consumed samples: 200 | lm loss: NAN | grad norm: "
     "nan |\n"
     " [2026-11-28 09:00:01] iteration      201/ 1000 | consumed samples: 201 | lm loss: NAN | grad norm: "
     "nan |\n",
     SIGNATURE_NUMERIC},
    {"{'loss': nan, 'grad_norm': nan, 'learning_rate': 0.0, 'epoch': 0.1}\n{'loss': nan, 'grad_norm': nan, "
     "'learning_rate': 0.0, 'epoch': 0.2}\n",
     SIGNATURE_NUMERIC},
    {"Epoch 3/10: 100%|##########| 7/7 [00:01<00:00, 4.1it/s, loss=nan, v_num=0]\n", SIGNATURE_NUMERIC},
    {"step 7 loss inf\nstep 8 loss 2.40\nstep 9 loss 2.39\n", SIGNATURE_NONE},
    {"nan_to_num is on; loss 2.41\n" STEPS, SIGNATURE_NONE},
};

static void numbers(void **state)
{
    (void)state;
    CHECK_ROWS(numbers_rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peers),        cmocka_unit_test(memory), cmocka_unit_test(programs),
        cmocka_unit_test(surroundings), cmocka_unit_test(chips),  cmocka_unit_test(numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

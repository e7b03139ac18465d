/* The rules of signatures against lines as programs print them: one table a family, each with forms that are
 * a cause and lines alike that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "signature_rows.h"

#define HEAD                                                                                                 \
    "Traceback (most recent call last):\n  File \"/app/train.py\", line 31, in <module>\n    main()\n"
#define TRACE(last) HEAD last "\n"
#define R3(last)                                                                                             \
    "[rank3]: Traceback (most recent call last):\n[rank3]:   File \"train.py\", line 3, in <module>\n"       \
    "[rank3]:     main()\n[rank3]: " last "\n"
#define ORIGINAL                                                                                             \
    "\n\nOriginal Traceback (most recent call last):\n  File \"worker.py\", line 309, in _loop\n    f()\n"
#define DURING "\nDuring handling of the above exception, another exception occurred:\n\n"
#define STEPS  "step 7 loss 2.41\nstep 8 loss 2.40\n"

/* NCCL through torch 1.x and 2.x: what a victim says, and what carries a cause of its own. */
static const struct row nccl_rows[] = {
    {TRACE(
         "RuntimeError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1191, unhandled "
         "system error, NCCL version 2.10.3\nncclSystemError: System call (e.g. socket, malloc) or external "
         "library call failed or device error. It can be also caused by unexpected exit of a remote peer, "
         "you "
         "can check NCCL warnings for failure reason and see if there is connection closure by a peer."),
     SIGNATURE_PEER},
    {TRACE(
         "RuntimeError: NCCL error in: /pytorch/torch/lib/c10d/ProcessGroupNCCL.cpp:784, invalid usage, NCCL "
         "version 2.7.8"),
     SIGNATURE_PEER},
    {TRACE("RuntimeError: NCCL error in: /opt/conda/conda-bld/pytorch_1607370172916/work/torch/lib/c10d/"
           "ProcessGroupNCCL.cpp:784, unhandled system error, NCCL version 2.7.8"),
     SIGNATURE_PEER},
    {TRACE("RuntimeError: NCCL error in: ../torch/lib/c10d/ProcessGroupNCCL.cpp:911, internal error, NCCL "
           "version "
           "2.8.3\nncclInternalError: Internal check failed. This is either a bug in NCCL or due to memory "
           "corruption"),
     SIGNATURE_PEER},
    {TRACE("RuntimeError: NCCL Error 2: unhandled system error"), SIGNATURE_PEER},
    {TRACE(
         "RuntimeError: NCCL communicator was aborted on rank 3.  Original reason for failure was: [Rank 3] "
         "Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE, TensorShape=[1], "
         "Timeout(ms)=1800000) ran for 1803170 milliseconds before timing out."),
     SIGNATURE_WATCHDOG},
    {TRACE("RuntimeError: NCCL communicator was aborted on rank 0."), SIGNATURE_PEER},
    {TRACE(
         "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/"
         "ProcessGroupNCCL.cpp:1970, remote process exited or there was a network error, NCCL version "
         "2.20.5\nncclRemoteError: A call failed possibly due to a network error or a remote process exiting "
         "prematurely.\nLast error:\nsocketProgress: Connection closed by remote peer node-7<43512>"),
     SIGNATURE_PEER},
    {R3("torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/"
        "NCCLUtils.cpp:94, unhandled system error (run with NCCL_DEBUG=INFO for details), NCCL version "
        "2.26.2\n"
        "[rank3]: ncclSystemError: System call (e.g. socket, malloc) or external library call failed or "
        "device "
        "error.\n[rank3]: Last error:\n[rank3]: socketPollConnect: connect to 10.0.0.7<41213> returned "
        "Connection "
        "refused, exceeded error retry count after 35 attempts"),
     SIGNATURE_PEER},
    {"[E ProcessGroupNCCL.cpp:587] [Rank 2] Watchdog caught collective operation timeout: "
     "WorkNCCL(OpType=ALLGATHER, "
     "TensorShape=[2359296], Timeout(ms)=1800000) ran for 1804406 milliseconds before timing out.\n"
     "[E ProcessGroupNCCL.cpp:341] Some NCCL operations have failed or timed out. Due to the asynchronous "
     "nature of "
     "CUDA kernels, subsequent GPU operations might run on corrupted/incomplete data. To avoid this "
     "inconsistency, "
     "we are taking the entire process down.\nterminate called after throwing an instance of "
     "'std::runtime_error'\n"
     "  what():  [Rank 2] Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLGATHER, "
     "TensorShape=[2359296], Timeout(ms)=1800000) ran for 1804406 milliseconds before timing out.\n"
     "Fatal Python error: Aborted\n\nThread 0x00007f1 (most recent call first):\n  File \"a.py\", line 3 in "
     "wait\n"
     "Aborted (core dumped)\n",
     SIGNATURE_WATCHDOG},
    {"[rank5]:[E1124 11:02:33.101 ProcessGroupNCCL.cpp:616] [Rank 5] Watchdog caught collective operation "
     "timeout: "
     "WorkNCCL(SeqNum=88, OpType=_REDUCE_SCATTER_BASE, NumelIn=4, NumelOut=1, Timeout(ms)=600000) ran for "
     "600021 "
     "milliseconds before timing out.\n[rank5]:[E1124 11:02:34.201 ProcessGroupNCCL.cpp:1834] [PG ID 0 PG "
     "GUID "
     "0(default_pg) Rank 5] Exception (either an error or timeout) detected by watchdog at work: 88, last "
     "enqueued "
     "NCCL work: 90, last completed NCCL work: 87.\n[rank5]:[E1124 11:02:34.301 ProcessGroupNCCL.cpp:681] "
     "[Rank 5] To "
     "avoid data inconsistency, we are taking the entire process down.\n[rank5]:[E1124 11:02:34.401 "
     "ProcessGroupNCCL.cpp:1895] [PG ID 0 PG GUID 0(default_pg) Rank 5] Process group watchdog thread "
     "terminated with "
     "exception: [Rank 5] Watchdog caught collective operation timeout\nterminate called after throwing an "
     "instance "
     "of 'c10::DistBackendError'\n  what():  [PG ID 0 PG GUID 0(default_pg) Rank 5] Process group watchdog "
     "thread "
     "terminated with exception: [Rank 5] Watchdog caught collective operation timeout\n",
     SIGNATURE_WATCHDOG},
    {"[rank0]:[E1124 11:00:00 ProcessGroupNCCL.cpp:1316] [PG 0 Rank 0] First PG on this rank detecting the "
     "error\n"
     "[rank0]:[F1124 11:00:00 ProcessGroupNCCL.cpp:1370] [PG 0 Rank 0] [PG 0 Rank 0] ProcessGroupNCCL's "
     "watchdog got "
     "stuck for 480 seconds without making progress in monitoring enqueued collectives.\n",
     SIGNATURE_WATCHDOG},
    {"[rank1]:[E1124 ProcessGroupNCCL.cpp:1182] [Rank 1] NCCL watchdog thread terminated with exception: "
     "CUDA error: "
     "an illegal memory access was encountered\nterminate called after throwing an instance of "
     "'c10::DistBackendError'\n  what():  [Rank 1] NCCL watchdog thread terminated with exception: CUDA "
     "error: an "
     "illegal memory access was encountered\n",
     SIGNATURE_CHIP},
    {"[rank1]:[E1124 ProcessGroupNCCL.cpp:1182] [Rank 1] Process group watchdog thread terminated with "
     "exception: CUDA "
     "error: uncorrectable ECC error encountered\nterminate called after throwing an instance of "
     "'c10::DistBackendError'\n  what():  CUDA error: uncorrectable ECC error encountered\n",
     SIGNATURE_CHIP_BROKEN},
    {TRACE("torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1333, unhandled cuda "
           "error (run "
           "with NCCL_DEBUG=INFO for details), NCCL version 2.19.3\nncclUnhandledCudaError: Call to CUDA "
           "function "
           "failed.\nLast error:\nCuda failure 2 'out of memory'"),
     SIGNATURE_CHIP_MEMORY},
    {TRACE("RuntimeError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1269, unhandled "
           "cuda "
           "error, NCCL version 2.14.3\nncclUnhandledCudaError: Call to CUDA function failed."),
     SIGNATURE_CHIP},
    {TRACE("torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1691, unhandled system "
           "error\n"
           "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device "
           "error.\n"
           "Last error:\nError while creating shared memory segment /dev/shm/nccl-gCdX3v (size 9637888)"),
     SIGNATURE_SHARED_MEMORY},
    {"n1:77:99 [0] misc/shmutils.cc:72 NCCL WARN Error: failed to extend /dev/shm/nccl-x to 9637892 "
     "bytes\nn1:77:99 [0] "
     "include/shm.h:48 NCCL WARN Call to posix_fallocate failed : No space left on device\n",
     SIGNATURE_SHARED_MEMORY},
    {"n1:77:99 [0] init.cc:801 NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device "
     "3b000\n" TRACE(
         "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:1331, invalid usage\n"
         "ncclInvalidUsage: This usually reflects invalid usage of NCCL library."),
     SIGNATURE_TRACEBACK},
    {"n1:77:99 [3] transport/net_ib.cc:1295 NCCL WARN NET/IB : Got completion from peer 10.0.0.2<4791> with "
     "status=12 "
     "opcode=0 len=0 vendor err 129 (Send) localGid fe80::1 remoteGid fe80::2 error 12",
     SIGNATURE_NETWORK},
    {"jaxlib.xla_extension.XlaRuntimeError: INTERNAL: NCCL operation ncclAllReduce(...) failed: unhandled "
     "system error "
     "(run with NCCL_DEBUG=INFO for details)",
     SIGNATURE_PEER},
    {TRACE("RuntimeError: Rank 3 successfully reached monitoredBarrier, but received errors while waiting "
           "for send/recv "
           "from rank 0. Please check rank 0 logs for faulty rank.\n[E] Rank 0 failed to pass "
           "monitoredBarrier in "
           "30000 ms"),
     SIGNATURE_WATCHDOG},
    {TRACE("torch.distributed.DistStoreError: Timed out after 901 seconds waiting for clients. 1/2 clients "
           "joined."),
     SIGNATURE_PEER},
    {TRACE("RuntimeError: Timed out initializing process group in store based barrier on rank: 1, for key: "
           "store_based_barrier_key:1 (world_size=4, worker_count=3, timeout=0:30:00)"),
     SIGNATURE_WATCHDOG},
    {TRACE("torch.distributed.elastic.rendezvous.api.RendezvousTimeoutError"), SIGNATURE_PEER},
    {TRACE("horovod.common.exceptions.HorovodInternalError: ncclCommInitRank failed: unhandled system error"),
     SIGNATURE_PEER},
    /* No errors. */
    {"[rank0]:[W1124 10:00:00.000 ProcessGroupNCCL.cpp:1250] Warning: WARNING: process group has NOT been "
     "destroyed "
     "before we destruct ProcessGroupNCCL.\n",
     SIGNATURE_NONE},
    {"n1:77:99 [0] NCCL INFO [Service thread] Connection closed by localRank 0\n", SIGNATURE_NONE},
    {"[I1124 10:00:00 ProcessGroupNCCL.cpp:835] [PG 0 Rank 0] ProcessGroupNCCL initialization options: size: "
     "2, timeout: "
     "600000\n",
     SIGNATURE_NONE},
    {"[W socket.cpp:663] [c10d] The client socket has failed to connect to [localhost]:29500 (errno: 99 - "
     "Cannot assign "
     "requested address).\n",
     SIGNATURE_NONE},
};

static void nccl(void **state)
{
    (void)state;
    CHECK_ROWS(nccl_rows);
}

/* Errors that were caught, retried or warned of do not outweigh the end. */
static const struct row survived_rows[] = {
    {"CUDA out of memory, trying 32\n" STEPS TRACE("ValueError: the batch is empty"), SIGNATURE_TRACEBACK},
    {"caught torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB; batch size is 32 "
     "now\n" STEPS TRACE("ValueError: x"),
     SIGNATURE_TRACEBACK},
    {"ERROR:root:out of memory, retrying\n" TRACE(
         "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 "
         "GiB.") STEPS TRACE("KeyError: 'x'"),
     SIGNATURE_TRACEBACK},
    {TRACE("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
         STEPS R3("KeyError: 'x'"),
     SIGNATURE_TRACEBACK},
    {TRACE("ValueError: x") "CUDA out of memory, trying 32\n" STEPS,
     SIGNATURE_TRACEBACK}, /* stdout comes late */
    {"wandb: ERROR No space left on device (retrying)\n" STEPS TRACE("ValueError: x"), SIGNATURE_TRACEBACK},
    {"wandb: No space left on device (retrying)\n" STEPS, SIGNATURE_NONE},
    {"/app/a.py:3: UserWarning: CUDA error: invalid device function\n  warnings.warn(\n" TRACE(
         "ValueError: x"),
     SIGNATURE_TRACEBACK},
    {"/app/a.py:3: UserWarning: CUDA error: uncorrectable ECC error encountered\n" TRACE("ValueError: x"),
     SIGNATURE_TRACEBACK},
    {"WARNING:root:Connection reset by peer\n" TRACE("IndexError: x"), SIGNATURE_TRACEBACK},
    {"2026-11-24 10:00:00 WARNING s3: [Errno 104] Connection reset by peer\n" STEPS, SIGNATURE_NONE},
    {"OSError: [Errno 5] Input/output error, retrying in 3 s\n" STEPS TRACE("AssertionError"),
     SIGNATURE_TRACEBACK},
    {"INFO handler for CUDA out of memory is installed\n" STEPS, SIGNATURE_NONE},
    {"Exception ignored in: <function X.__del__ at 0x7f>\n" TRACE(
         "TypeError: 'NoneType' object is not callable"),
     SIGNATURE_NONE},
    {"--- Logging error ---\n" TRACE("OSError: [Errno 28] No space left on device") STEPS, SIGNATURE_NONE},
    {TRACE("ValueError: x") "Exception ignored in: <function X.__del__ at 0x7f>\n" TRACE("MemoryError"),
     SIGNATURE_TRACEBACK},
    {TRACE("ValueError: x") "terminate called without an active exception\nAborted (core dumped)\n",
     SIGNATURE_TRACEBACK},
    {TRACE("ValueError: x") "terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA "
                            "driver is "
                            "shutting down\n",
     SIGNATURE_TRACEBACK},
    {TRACE("KeyError: handled") STEPS "double free or corruption (!prev)\nAborted (core dumped)\n",
     SIGNATURE_ABORT},
    {"[W CUDAGuardImpl.h:115] Warning: CUDA warning: an illegal memory access was encountered (function "
     "destroyEvent)\n" TRACE("RuntimeError: CUDA error: an illegal memory access was encountered"),
     SIGNATURE_CHIP},
    {"nvidia-smi: Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.\n" TRACE(
         "RuntimeError: CUDA error: unspecified launch failure"),
     SIGNATURE_CHIP_BROKEN},
    {TRACE("MemoryError") DURING TRACE("RuntimeError: training failed"), SIGNATURE_MEMORY},
    {TRACE("ValueError: x")
         DURING TRACE("torch.distributed.DistBackendError: NCCL error in: x, remote process exited"),
     SIGNATURE_TRACEBACK},
    {TRACE("ConnectionResetError: [Errno 104] Connection reset by peer") DURING TRACE("RuntimeError: failed"),
     SIGNATURE_PEER},
    {"Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 65536.0\n" STEPS,
     SIGNATURE_NONE},
    {"requests: Max retries exceeded with url, retrying in 5 s\n" STEPS,
     SIGNATURE_SERVICE}, /* it says that it gave up */
};

static void survived(void **state)
{
    (void)state;
    CHECK_ROWS(survived_rows);
}

/* Host memory: kernels, Slurm, Kubernetes, Ray, systemd, other run-times. */
static const struct row host_memory_rows[] = {
    {"[8812.1] Out of memory: Killed process 4711 (python) total-vm:90012kB, anon-rss:88000kB, "
     "oom_score_adj:0",
     SIGNATURE_OOM},
    {"Out of memory: Kill process 4711 (python) score 912 or sacrifice child", SIGNATURE_OOM},
    {"Memory cgroup out of memory: Killed process 4711 (python) total-vm:1kB", SIGNATURE_OOM},
    {"Memory cgroup out of memory: Kill process 4711 (python) score 1 or sacrifice child", SIGNATURE_OOM},
    {"Killed process 4711 (python) total-vm:90012kB, anon-rss:88000kB, file-rss:0kB", SIGNATURE_OOM},
    {"python invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0", SIGNATURE_OOM},
    {"oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,task=python,pid=4711,uid=0",
     SIGNATURE_OOM},
    {"oom_reaper: reaped process 4711 (python), now anon-rss:0kB", SIGNATURE_OOM},
    {"slurmstepd: error: Detected 1 oom-kill event(s) in StepId=99.0. Some of your processes may have been "
     "killed by the "
     "cgroup out-of-memory handler.",
     SIGNATURE_OOM},
    {"slurmstepd: error: Detected 3 oom_kill events in StepId=99.batch. Some of the step tasks have been OOM "
     "Killed.",
     SIGNATURE_OOM},
    {"slurmstepd: error: Exceeded step memory limit at some point.", SIGNATURE_OOM},
    {"slurmstepd: error: Job 99 exceeded memory limit (1048 > 1024), being killed", SIGNATURE_OOM},
    {"srun: error: node7: task 3: Out Of Memory", SIGNATURE_OOM},
    {"Last State: Terminated, Reason: OOMKilled, Exit Code: 137", SIGNATURE_OOM},
    {"ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
     SIGNATURE_OOM},
    {"systemd-oomd: Killed /system.slice/job.scope due to memory pressure", SIGNATURE_OOM},
    {"job.service: A process of this unit has been killed by the OOM killer.", SIGNATURE_OOM},
    {"earlyoom[9]: sending SIGTERM to process 4711 uid 0 \"python\": badness 900", SIGNATURE_OOM},
    {"Container is running beyond physical memory limits. Current usage: 2.1 GB of 2 GB physical memory used",
     SIGNATURE_OOM},
    {TRACE("numpy.core._exceptions._ArrayMemoryError: Unable to allocate 7.45 GiB for an array with shape "
           "(1000, 1000) "
           "and data type float64"),
     SIGNATURE_MEMORY},
    {TRACE("RuntimeError: [enforce fail at alloc_cpu.cpp:83] err == 0. DefaultCPUAllocator: can't allocate "
           "memory: you "
           "tried to allocate 4096000000 bytes. Error code 12 (Cannot allocate memory)"),
     SIGNATURE_MEMORY},
    {TRACE("OSError: [Errno 12] Cannot allocate memory"), SIGNATURE_MEMORY},
    {"bash: fork: Cannot allocate memory", SIGNATURE_MEMORY},
    {"Exception in thread \"main\" java.lang.OutOfMemoryError: Java heap space\n\tat A.main(A.java:3)",
     SIGNATURE_MEMORY},
    {"fatal error: runtime: out of memory\n\nruntime stack:", SIGNATURE_MEMORY},
    {"memory allocation of 1099511627776 bytes failed\nAborted (core dumped)", SIGNATURE_MEMORY},
    {"terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\n",
     SIGNATURE_MEMORY},
    {"FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory", SIGNATURE_MEMORY},
    {"==7==ERROR: AddressSanitizer: allocator is out of memory trying to allocate 0x1000 bytes",
     SIGNATURE_MEMORY},
    {TRACE("RuntimeError: can't start new thread"), SIGNATURE_DESCRIPTORS},
    {"OpenBLAS blas_thread_init: pthread_create failed for thread 7 of 64: Resource temporarily unavailable",
     SIGNATURE_DESCRIPTORS},
    {"bash: fork: retry: Resource temporarily unavailable", SIGNATURE_DESCRIPTORS},
    {"tcmalloc: large alloc 1073741824 bytes == 0x7f @\n" STEPS, SIGNATURE_NONE},
    {"WARNING: memory usage is 91 %, the OOM killer may act\n" STEPS, SIGNATURE_NONE},
};

static void host_memory(void **state)
{
    (void)state;
    CHECK_ROWS(host_memory_rows);
}

/* Exceptions without a head, assertions, other languages, sanitizers, the C library. */
static const struct row programs_rows[] = {
    {"ValueError: the loss is not a tensor\n", SIGNATURE_TRACEBACK},
    {"[rank3]: RuntimeError: shape '[2, 3]' is invalid for input of size 5\n", SIGNATURE_TRACEBACK},
    {"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n", SIGNATURE_CHIP_MEMORY},
    {"2026-11-24 10:00:00,123 - __main__ - ERROR - ValueError: bad shape\n", SIGNATURE_TRACEBACK},
    {"ERROR:root:training failed: KeyError: 'labels'\n", SIGNATURE_TRACEBACK},
    {"E1124 10:00:00.000000 77 train.py:12] ValueError: bad shape\n", SIGNATURE_TRACEBACK},
    {"2026-11-24T10:00:00Z ERROR Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n  "
     "  f()\n"
     "ValueError: x\n",
     SIGNATURE_TRACEBACK},
    {"2026-11-24T10:00:00.1Z stderr F Traceback (most recent call last):\n2026-11-24T10:00:00.2Z stderr F   "
     "File "
     "\"a.py\", line 1, in <module>\n2026-11-24T10:00:00.3Z stderr F     f()\n2026-11-24T10:00:00.4Z stderr "
     "F "
     "OSError: [Errno 5] Input/output error\n",
     SIGNATURE_STORAGE},
    {"  + Exception Group Traceback (most recent call last):\n  |   File \"a.py\", line 3, in <module>\n  | "
     "ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)\n  +-+---------------- 1 "
     "----------------\n"
     "    | Traceback (most recent call last):\n    |   File \"a.py\", line 2, in f\n    | ValueError: x\n"
     "    +------------------------------------\n",
     SIGNATURE_TRACEBACK},
    {TRACE("socket.timeout: timed out"), SIGNATURE_TRACEBACK},
    {TRACE("AssertionError: expected 3 tensors"), SIGNATURE_TRACEBACK},
    {TRACE("ModuleNotFoundError: No module named 'flash_attn'"), SIGNATURE_TRACEBACK},
    {"  File \"a.py\", line 3\n    x = = 3\n        ^\nSyntaxError: invalid syntax\n", SIGNATURE_TRACEBACK},
    {"train: train.c:77: main: Assertion `n > 0' failed.\nAborted (core dumped)\n", SIGNATURE_ABORT},
    {"Assertion failed: n > 0 (train.c: main: 77)\n", SIGNATURE_ABORT},
    {"Assertion failed: (n > 0), function main, file train.c, line 77.\n", SIGNATURE_ABORT},
    {"F1124 10:00:00.000000 77 table.cc:55] Check failed: rows > 0 (0 vs. 0)\n*** Check failure stack trace: "
     "***\n",
     SIGNATURE_ABORT},
    {"F0000 00:00:1732442400.000000 77 tensor.cc:55] Check failed: ok\n", SIGNATURE_ABORT},
    {TRACE("RuntimeError: t == DeviceType::CUDA INTERNAL ASSERT FAILED at \"CUDAGuardImpl.h\":25, please "
           "report a bug"),
     SIGNATURE_ABORT},
    {"../aten/src/ATen/native/cuda/Indexing.cu:1237: indexSelect: block: [0,0,0], thread: [0,0,0] Assertion "
     "`srcIndex < srcSelectDimSize` failed.\n" TRACE(
         "RuntimeError: CUDA error: device-side assert triggered"),
     SIGNATURE_CHIP},
    {"thread 'main' panicked at src/main.rs:4:10:\nindex out of bounds: the len is 3 but the index is "
     "7\nnote: run with "
     "`RUST_BACKTRACE=1` environment variable to display a backtrace\n",
     SIGNATURE_ABORT},
    {"thread '<unnamed>' panicked at 'called `Result::unwrap()` on an `Err` value: Os { code: 28, kind: "
     "StorageFull, "
     "message: \"No space left on device\" }', src/main.rs:4:10\n",
     SIGNATURE_DISK_FULL},
    {"thread 'main' has overflowed its stack\nfatal runtime error: stack overflow\nAborted (core dumped)\n",
     SIGNATURE_ABORT},
    {TRACE("pyo3_runtime.PanicException: assertion failed: x > 0"), SIGNATURE_ABORT},
    {"Exception in thread \"main\" java.lang.IllegalStateException: closed\n\tat A.main(A.java:3)\n",
     SIGNATURE_TRACEBACK},
    {"Exception in thread \"main\" java.lang.RuntimeException: save\n\tat A.main(A.java:3)\nCaused by: "
     "java.io.IOException: No space left on device\n\t... 3 more\n",
     SIGNATURE_DISK_FULL},
    {"#\n# A fatal error has been detected by the Java Runtime Environment:\n#\n#  SIGSEGV (0xb) at "
     "pc=0x7f\n",
     SIGNATURE_ABORT},
    {"panic: runtime error: index out of range [5] with length 3\n\ngoroutine 1 [running]:\nmain.main()\n",
     SIGNATURE_ABORT},
    {"fatal error: all goroutines are asleep - deadlock!\n", SIGNATURE_ABORT},
    {"fatal error: concurrent map writes\n", SIGNATURE_ABORT},
    {"==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x60 at pc 0x55\nREAD of size 4 at 0x60 "
     "thread T0\n",
     SIGNATURE_ABORT},
    {"AddressSanitizer:DEADLYSIGNAL\n==7==ERROR: AddressSanitizer: SEGV on unknown address 0x000\n",
     SIGNATURE_ABORT},
    {"==7==ERROR: LeakSanitizer: detected memory leaks\n", SIGNATURE_ABORT},
    {"free(): invalid pointer\nAborted (core dumped)\n", SIGNATURE_ABORT},
    {"free(): double free detected in tcache 2\n", SIGNATURE_ABORT},
    {"malloc(): invalid size (unsorted)\n", SIGNATURE_ABORT},
    {"malloc_consolidate(): invalid chunk size\n", SIGNATURE_ABORT},
    {"munmap_chunk(): invalid pointer\n", SIGNATURE_ABORT},
    {"corrupted double-linked list\n", SIGNATURE_ABORT},
    {"*** stack smashing detected ***: terminated\n", SIGNATURE_ABORT},
    {"*** buffer overflow detected ***: terminated\n", SIGNATURE_ABORT},
    {"*** Error in `./train': double free or corruption (fasttop): 0x01 ***\n", SIGNATURE_ABORT},
    {"pure virtual method called\nterminate called without an active exception\n", SIGNATURE_ABORT},
    {"Fatal Python error: Segmentation fault\n\nCurrent thread 0x7f (most recent call first):\n",
     SIGNATURE_ABORT},
    {"Fatal Python error: init_fs_encoding: failed to get the Python codec of the filesystem encoding\n",
     SIGNATURE_ABORT},
    {"run.sh: line 3: 4711 Bus error               (core dumped) ./train\n", SIGNATURE_ABORT},
    {"run.sh: line 3: 4711 Aborted                 (core dumped) ./train\n", SIGNATURE_ABORT},
    {"./train: error while loading shared libraries: libcudart.so.12: cannot open shared object file\n",
     SIGNATURE_ABORT},
    {"double free or corruption (!prev)\nConnection reset by peer\n", SIGNATURE_ABORT},
    {"Connection reset by peer\nSegmentation fault (core dumped)\n", SIGNATURE_PEER},
    /* No errors. */
    {"loss: 3.5\nerror_rate: 0.1\nErrors so far: 0\n", SIGNATURE_NONE},
    {"Error: 0.012 (train), 0.020 (val)\n", SIGNATURE_NONE},
    {"DeprecationWarning: invalid escape sequence\n", SIGNATURE_NONE},
    {"oom_kill_disable 0\nunder_oom 0\n", SIGNATURE_NONE},
    {"tests/test_a.py::test_panic PASSED\n", SIGNATURE_NONE},
    {"INFO ValueError: skipped sample 7\n", SIGNATURE_NONE},
};

static void programs(void **state)
{
    (void)state;
    CHECK_ROWS(programs_rows);
}

/* Launchers sum up; how a child was killed is all that they add. */
static const struct row launchers_rows[] = {
    {TRACE(
         "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n====\ntrain.py "
         "FAILED\n----\nFailures:\n"
         "  <NO_OTHER_FAILURES>\n----\nRoot Cause (first observed failure):\n[0]:\n  time      : "
         "2026-11-24_10:00:00\n"
         "  host      : n1\n  rank      : 0 (local_rank: 0)\n  exitcode  : 1 (pid: 77)\n  error_file: <N/A>\n"
         "  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"),
     SIGNATURE_NONE},
    {TRACE("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n[0]:\n  exitcode  : -9 "
           "(pid: 77)\n"
           "  traceback : Signal 9 (SIGKILL) received by PID 77"),
     SIGNATURE_KILLED},
    {"ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 2 (pid: 77) of "
     "binary: "
     "/usr/bin/python\n",
     SIGNATURE_KILLED},
    {"[E] Watchdog caught collective operation timeout\n" TRACE(
         "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n[0]:\n  exitcode  : -6 (pid: "
         "77)\n"
         "  traceback : Signal 6 (SIGABRT) received by PID 77"),
     SIGNATURE_WATCHDOG},
    {TRACE("torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n[0]:\n  exitcode  : -11 "
           "(pid: 77)\n"
           "  traceback : Signal 11 (SIGSEGV) received by PID 77"),
     SIGNATURE_ABORT},
    {"  error_file: /tmp/torchelastic/error.json\n  traceback : Traceback (most recent call last):\n    File "
     "\"errors/__init__.py\", line 346, in wrapper\n      return f(*args, **kwargs)\n  ValueError: x\n",
     SIGNATURE_TRACEBACK},
    {"W1124 10:00:00 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 78 closing signal "
     "SIGTERM\n",
     SIGNATURE_NONE},
    {TRACE("torch.distributed.elastic.multiprocessing.api.SignalException: Process 77 got signal: 15"),
     SIGNATURE_NONE},
    {"srun: error: n1: task 3: Exited with exit code 1\nsrun: Job step aborted: Waiting up to 32 seconds for "
     "job step to "
     "finish.\n",
     SIGNATURE_NONE},
    {"srun: error: n1: task 3: Killed\n", SIGNATURE_KILLED},
    {"srun: error: n1: task 3: Segmentation fault (core dumped)\n", SIGNATURE_ABORT},
    {"3: Traceback (most recent call last):\n3:   File \"a.py\", line 3, in <module>\n3: ValueError: "
     "x\nsrun: error: n1: "
     "task 3: Exited with exit code 1\n",
     SIGNATURE_TRACEBACK},
    {"slurmstepd: error: *** STEP 99.0 ON n1 CANCELLED AT 2026-11-24T10:00:00 DUE TO TIME LIMIT ***\n",
     SIGNATURE_NONE},
    {"slurmstepd: error: *** JOB 99 ON n1 CANCELLED AT 2026-11-24T10:00:00 DUE TO NODE FAILURE, SEE "
     "SLURMCTLD LOG FOR "
     "DETAILS ***\n",
     SIGNATURE_PEER},
    {"mpirun noticed that process rank 3 with PID 77 on node n1 exited on signal 9 (Killed).\n",
     SIGNATURE_KILLED},
    {"mpirun noticed that process rank 3 with PID 77 on node n1 exited on signal 11 (Segmentation fault).\n",
     SIGNATURE_ABORT},
    {"[2026-11-24 10:00:00,000] [ERROR] [launch.py:321:sigkill_handler] ['python', 'a.py'] exits with return "
     "code = -9\n",
     SIGNATURE_KILLED},
    {"[2026-11-24 10:00:00,000] [ERROR] [launch.py:321:sigkill_handler] ['python', 'a.py'] exits with return "
     "code = 1\n",
     SIGNATURE_NONE},
    {TRACE("ValueError: the worker's")
         TRACE("subprocess.CalledProcessError: Command '['python', 'a.py']' returned "
               "non-zero exit status 1."),
     SIGNATURE_TRACEBACK},
    {"[E] Watchdog caught collective operation timeout\n" TRACE(
         "subprocess.CalledProcessError: Command '['python']' "
         "died with <Signals.SIGABRT: 6>."),
     SIGNATURE_WATCHDOG},
    {TRACE("subprocess.CalledProcessError: Command '['python']' died with <Signals.SIGKILL: 9>."),
     SIGNATURE_KILLED},
    {TRACE("torch.multiprocessing.spawn.ProcessExitedException: process 0 terminated with signal SIGKILL"),
     SIGNATURE_KILLED},
    {TRACE("torch.multiprocessing.spawn.ProcessRaisedException: \n\n-- Process 1 terminated with the "
           "following error:\n" HEAD "ValueError: x"),
     SIGNATURE_TRACEBACK},
    {"[rank0]: Traceback (most recent call last):\n[rank1]: Traceback (most recent call last):\n[rank0]:   "
     "File \"a.py\", "
     "line 1\n[rank1]:   File \"a.py\", line 1\n[rank1]: torch.distributed.DistBackendError: NCCL error in: "
     "x, remote "
     "process exited\n[rank0]: IndexError: list index out of range\n",
     SIGNATURE_TRACEBACK},
    {"[default0]:Traceback (most recent call last):\n[default0]:  File \"a.py\", line "
     "1\n[default0]:RuntimeError: CUDA "
     "error: uncorrectable ECC error encountered\n",
     SIGNATURE_CHIP_BROKEN},
    {"(RayTrainWorker pid=77, ip=10.0.0.1) Traceback (most recent call last):\n(RayTrainWorker pid=77, "
     "ip=10.0.0.1)   File "
     "\"a.py\", line 1\n(RayTrainWorker pid=77, ip=10.0.0.1) ValueError: x\n",
     SIGNATURE_TRACEBACK},
    {TRACE("ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task."),
     SIGNATURE_PEER},
};

static void launchers(void **state)
{
    (void)state;
    CHECK_ROWS(launchers_rows);
}

/* Data loaders, storage, names, services. */
static const struct row surroundings_rows[] = {
    {TRACE("RuntimeError: DataLoader worker (pid 4711) is killed by signal: Killed. "), SIGNATURE_KILLED},
    {"ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory "
     "(shm).\n" TRACE("RuntimeError: DataLoader worker (pid 4711) is killed by signal: Bus error. It is "
                      "possible that dataloader's "
                      "workers are out of shared memory. Please try to raise your shared memory limit."),
     SIGNATURE_SHARED_MEMORY},
    {TRACE("RuntimeError: DataLoader worker (pid(s) 4711, 4712) exited unexpectedly"), SIGNATURE_TRACEBACK},
    {"double free or corruption (out)\n" TRACE(
         "RuntimeError: DataLoader worker (pid 4711) is killed by signal: "
         "Aborted."),
     SIGNATURE_ABORT},
    {TRACE("RuntimeError: DataLoader worker (pid 4711) is killed by signal: Segmentation fault."),
     SIGNATURE_ABORT},
    {TRACE("OSError: Caught OSError in DataLoader worker process 3." ORIGINAL
           "OSError: [Errno 5] Input/output error: "
           "'/data/7.tar'"),
     SIGNATURE_STORAGE},
    {TRACE("KeyError: Caught KeyError in DataLoader worker process 0." ORIGINAL "KeyError: 'image'"),
     SIGNATURE_TRACEBACK},
    {TRACE("RuntimeError: unable to write to file </torch_77_1>: No space left on device (28)"),
     SIGNATURE_SHARED_MEMORY},
    {TRACE("OSError: [Errno 28] No space left on device: '/ckpt/7.pt'"), SIGNATURE_DISK_FULL},
    {TRACE("OSError: [Errno 122] Disk quota exceeded"), SIGNATURE_DISK_FULL},
    {"tee: out.log: No space left on device\n", SIGNATURE_DISK_FULL},
    {TRACE("OSError: [Errno 116] Stale file handle: '/nfs/data'"), SIGNATURE_STORAGE},
    {TRACE("OSError: [Errno 30] Read-only file system: '/ckpt'"), SIGNATURE_STORAGE},
    {TRACE("OSError: [Errno 121] Remote I/O error"), SIGNATURE_STORAGE},
    {TRACE("OSError: [Errno 108] Cannot send after transport endpoint shutdown: '/lustre/x'"),
     SIGNATURE_STORAGE},
    {TRACE("OSError: [Errno 107] Transport endpoint is not connected: '/mnt/gcs'"), SIGNATURE_STORAGE},
    {TRACE("TimeoutError: [Errno 110] Connection timed out: '/mnt/nfs/7.tar'"), SIGNATURE_STORAGE},
    {TRACE("RuntimeError: [enforce fail at inline_container.cc:471] . PytorchStreamWriter failed writing "
           "file data/77: "
           "file write failed"),
     SIGNATURE_STORAGE},
    {"cat: /data/7: Input/output error\n", SIGNATURE_STORAGE},
    {TRACE("socket.gaierror: [Errno -2] Name or service not known"), SIGNATURE_NAME},
    {TRACE("socket.gaierror: [Errno -3] Temporary failure in name resolution"), SIGNATURE_NAME},
    {TRACE("requests.exceptions.ConnectionError: HTTPSConnectionPool(host='hub', port=443): Max retries "
           "exceeded with "
           "url: /x (Caused by NameResolutionError(\"Failed to resolve 'hub' ([Errno -3] Temporary failure "
           "in name "
           "resolution)\"))"),
     SIGNATURE_NAME},
    {"curl: (6) Could not resolve host: example.com\n", SIGNATURE_NAME},
    {"ssh: Could not resolve hostname n7: Name or service not known\n", SIGNATURE_NAME},
    {"dial tcp: lookup etcd on 10.0.0.10:53: no such host\n", SIGNATURE_NAME},
    {"Exception in thread \"main\" java.net.UnknownHostException: hdfs: Name or service not known\n",
     SIGNATURE_NAME},
    {TRACE("requests.exceptions.ConnectionError: HTTPSConnectionPool(host='hub', port=443): Max retries "
           "exceeded with "
           "url: /x (Caused by NewConnectionError('Failed to establish a new connection: [Errno 111] "
           "Connection "
           "refused'))"),
     SIGNATURE_SERVICE},
    {TRACE("botocore.exceptions.EndpointConnectionError: Could not connect to the endpoint URL: "
           "\"https://s3/\""),
     SIGNATURE_SERVICE},
    {TRACE("botocore.exceptions.ClientError: An error occurred (SlowDown) when calling the GetObject "
           "operation: Please "
           "reduce your request rate."),
     SIGNATURE_SERVICE},
    {TRACE("botocore.exceptions.ClientError: An error occurred (AccessDenied) when calling the GetObject "
           "operation"),
     SIGNATURE_TRACEBACK},
    {TRACE("requests.exceptions.HTTPError: 503 Server Error: Service Unavailable for url: https://hub/x"),
     SIGNATURE_SERVICE},
    {TRACE("requests.exceptions.HTTPError: 404 Client Error: Not Found for url: https://hub/x"),
     SIGNATURE_TRACEBACK},
    {TRACE("OSError: [Errno 98] Address already in use"), SIGNATURE_ADDRESS},
    {TRACE("torch.distributed.DistNetworkError: The server socket has failed to listen on any local network "
           "address. "
           "port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use"),
     SIGNATURE_ADDRESS},
    {TRACE("FileNotFoundError: [Errno 2] No such file or directory: '/data/x'"), SIGNATURE_TRACEBACK},
    {TRACE("PermissionError: [Errno 13] Permission denied: '/ckpt'"), SIGNATURE_TRACEBACK},
};

static void surroundings(void **state)
{
    (void)state;
    CHECK_ROWS(surroundings_rows);
}

/* CUDA, ROCm, Gaudi, Ascend, TPU, Intel: what programs do, what is broken, missing or not running. */
static const struct row chips_rows[] = {
    {TRACE("RuntimeError: CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be "
           "asynchronously reported at some other API call"),
     SIGNATURE_CHIP},
    {TRACE("torch.AcceleratorError: CUDA error: unspecified launch failure"), SIGNATURE_CHIP},
    {TRACE("RuntimeError: CUDA error: invalid device ordinal"), SIGNATURE_CHIP},
    {TRACE("RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx`"),
     SIGNATURE_CHIP},
    {TRACE("RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"), SIGNATURE_CHIP},
    {TRACE("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
     SIGNATURE_CHIP_MEMORY},
    {TRACE("RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 79.35 GiB total capacity) "
           "If reserved "
           "memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation."),
     SIGNATURE_CHIP_MEMORY},
    {TRACE("RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution"),
     SIGNATURE_CHIP_BROKEN},
    {TRACE("RuntimeError: CUDA error: hardware stack error"), SIGNATURE_CHIP_BROKEN},
    {TRACE("RuntimeError: CUDA error: Invalid access of peer GPU memory over nvlink or a hardware error"),
     SIGNATURE_CHIP_BROKEN},
    {"INTERNAL: Failed to synchronize: CUDA_ERROR_ECC_UNCORRECTABLE: uncorrectable ECC error encountered",
     SIGNATURE_CHIP_BROKEN},
    {"Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error\n", SIGNATURE_CHIP_BROKEN},
    {TRACE("RuntimeError: No CUDA GPUs are available"), SIGNATURE_CHIP_MISSING},
    {TRACE("RuntimeError: CUDA error: no CUDA-capable device is detected"), SIGNATURE_CHIP_MISSING},
    {"No devices were found\n", SIGNATURE_CHIP_MISSING},
    {TRACE("RuntimeError: CUDA error: system not yet initialized"), SIGNATURE_DRIVER},
    {TRACE("RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before "
           "calling "
           "NumCudaDevices() that might have already set an error? Error 802: system not yet initialized"),
     SIGNATURE_DRIVER},
    {TRACE("RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: system has unsupported "
           "display driver / "
           "cuda driver combination"),
     SIGNATURE_DRIVER},
    {"Failed to initialize NVML: Driver/library version mismatch\n", SIGNATURE_DRIVER},
    {"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n", SIGNATURE_DRIVER},
    {TRACE("RuntimeError: Found no NVIDIA driver on your system."), SIGNATURE_DRIVER},
    {TRACE("RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable"), SIGNATURE_DRIVER},
    {"Fabric Manager is not running, NVLink is not available\n", SIGNATURE_DRIVER},
    {"nvidia-fabricmanager.service: Failed with result 'exit-code'\n", SIGNATURE_DRIVER},
    {"GPU 0: fabric state: In Progress\n", SIGNATURE_DRIVER},
    /* ROCm */
    {TRACE("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
           "capacity of 64 GiB"),
     SIGNATURE_CHIP_MEMORY},
    {TRACE("RuntimeError: HIP error: an illegal memory access was encountered"), SIGNATURE_CHIP},
    {TRACE("RuntimeError: HIP error: invalid device function"), SIGNATURE_CHIP},
    {"Memory access fault by GPU node-4 (Agent handle: 0x55) on address 0x7f. Reason: Page not present or "
     "supervisor "
     "privilege.\nAborted (core dumped)\n",
     SIGNATURE_CHIP},
    {":0:rocdevice.cpp:2660: 88us: Callback: Queue 0x7f aborting with error : HSA_STATUS_ERROR_EXCEPTION: An "
     "HSAIL "
     "operation resulted in a hardware exception. code: 0x1016\n",
     SIGNATURE_CHIP},
    {TRACE("RuntimeError: HIP error: hipErrorECCNotCorrectable"), SIGNATURE_CHIP_BROKEN},
    {TRACE("RuntimeError: No HIP GPUs are available"), SIGNATURE_CHIP_MISSING},
    {"Unable to open /dev/kfd read-write: No such file or directory\n", SIGNATURE_DRIVER},
    /* Gaudi */
    {TRACE("RuntimeError: synStatus=26 [Generic failure] Device acquire failed."), SIGNATURE_CHIP_MISSING},
    {TRACE("RuntimeError: [Rank:0] FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::12345 (0)MB"),
     SIGNATURE_CHIP_MEMORY},
    {TRACE("RuntimeError: [Rank:0] FATAL ERROR :: MODULE:PT_SYNHELPER synLaunch failed"), SIGNATURE_CHIP},
    {R3("RuntimeError: Graph compile failed. synStatus=synStatus 26 [Generic failure]."), SIGNATURE_CHIP},
    /* Ascend */
    {TRACE("RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 60.97 GiB total capacity)"),
     SIGNATURE_CHIP_MEMORY},
    {TRACE("RuntimeError: ACL stream synchronize failed, error code:507015\n[ERROR] 2026-11-24-10:00:00 "
           "(PID:77, "
           "Device:0, RankID:-1) ERR00100 PTA call acl api failed\n[Error]: The aicore execution is "
           "abnormal.\nEZ9999: "
           "Inner Error!"),
     SIGNATURE_CHIP},
    {TRACE("RuntimeError: [ERROR] HCCL error in: torch_npu/csrc/distributed/ProcessGroupHCCL.cpp:64\n[ERROR] "
           "2026-11-24-10:00:00 (PID:77, Device:0, RankID:0) ERR02200 DIST call hccl api failed."),
     SIGNATURE_PEER},
    {"EI0002: The wait execution of the Notify register times out. Reason: The Notify register has not "
     "received the "
     "Notify record from remote rank [3].\n",
     SIGNATURE_WATCHDOG},
    {"[rank1]: EI0006: Getting socket times out. Reason: Remote Rank did not send the data in time.\n",
     SIGNATURE_WATCHDOG},
    {"[rank1]: EI0009: Transport init error. Reason: [Create][DestLink]Create Dest error!\n", SIGNATURE_PEER},
    {"EZ9999: Inner Error!\n        there is an exception of fftsplus aicore error, core id is 0\n",
     SIGNATURE_CHIP},
    {"HBM MULTI BIT ECC: device 3\n", SIGNATURE_CHIP_BROKEN},
    /* JAX, TPU */
    {TRACE("jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate "
           "17179869184 "
           "bytes."),
     SIGNATURE_CHIP_MEMORY},
    {TRACE("jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of "
           "memory in memory "
           "space hbm. Used 20.00G of 15.48G hbm."),
     SIGNATURE_CHIP_MEMORY},
    {TRACE("jaxlib.xla_extension.XlaRuntimeError: INTERNAL: Accelerator device halted prematurely, perhaps "
           "due to an "
           "on-device check-failure. Node 0 halted unexpectedly at tag:pc TensorCoreSequencer:1:0x1"),
     SIGNATURE_CHIP},
    {TRACE("RuntimeError: INTERNAL: Core halted unexpectedly"), SIGNATURE_CHIP},
    {TRACE("RuntimeError: Unable to initialize backend 'tpu': UNAVAILABLE: TPU initialization failed: "
           "open(/dev/vfio/0): No such file or directory"),
     SIGNATURE_CHIP_MISSING},
    {TRACE("RuntimeError: Unable to initialize backend 'tpu': ABORTED: The TPU is already in use by process "
           "with pid "
           "77."),
     SIGNATURE_CHIP},
    {"E1124 10:00:00 77 coordination_service_agent.cc:332] Polled an error from coordination service: "
     "UNAVAILABLE: Task "
     "/job:jax_worker/replica:0/task:1 heartbeat timeout. This indicates that the remote task has failed, "
     "got preempted, "
     "or crashed unexpectedly.\nF1124 10:00:01 77 client.h:80] Terminating process because the JAX "
     "distributed service "
     "detected fatal errors. This most likely indicates that another task died.\n*** Check failure stack "
     "trace: ***\n",
     SIGNATURE_PEER},
    {TRACE("jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Barrier_id: "
           "PjRT_Client_Connect."),
     SIGNATURE_WATCHDOG},
    {"INFO:2026-11-24 10:00:00,000:jax._src.xla_bridge:889: Unable to initialize backend 'tpu': INTERNAL: "
     "Failed to open "
     "libtpu.so\n" STEPS,
     SIGNATURE_NONE},
    /* Intel */
    {TRACE("RuntimeError: Native API failed. Native API returns: 20 (UR_RESULT_ERROR_DEVICE_LOST)"),
     SIGNATURE_CHIP_BROKEN},
    {TRACE("torch.OutOfMemoryError: XPU out of memory. Tried to allocate 2.00 GiB"), SIGNATURE_CHIP_MEMORY},
};

static void chips(void **state)
{
    (void)state;
    CHECK_ROWS(chips_rows);
}

/* A loss that is no number and stays so, in the log of a program that goes on or ends by itself. */
static const struct row numbers_rows[] = {
    {"step 7, loss: 2.31\nstep 8, loss: nan\nstep 9, loss: nan\n", SIGNATURE_NUMERIC},
    {"iteration 8/ 100 | lm loss: NaN | loss scale: 1.0 |\n", SIGNATURE_NUMERIC},
    {"{'loss': nan, 'grad_norm': nan, 'epoch': 0.1}\n", SIGNATURE_NUMERIC},
    {"epoch 1 train_loss=inf val=3\n", SIGNATURE_NUMERIC},
    {"step 8 loss -inf\n", SIGNATURE_NUMERIC},
    {"Loss is nan, stopping training\n", SIGNATURE_NUMERIC},
    {"[rank3]: step 8 loss=nan\n[rank0]: step 8 loss=2.3\n", SIGNATURE_NUMERIC},
    {"step 8 loss: nan\n" TRACE("ValueError: x"), SIGNATURE_NUMERIC},
    {TRACE("RuntimeError: Function 'MulBackward0' returned nan values in its 0th output."),
     SIGNATURE_NUMERIC},
    {TRACE("FloatingPointError: invalid value (nan) encountered in jit(f)"), SIGNATURE_NUMERIC},
    {TRACE("RuntimeError: probability tensor contains either `inf`, `nan` or element < 0"),
     SIGNATURE_NUMERIC},
    {TRACE("RuntimeError: Rank 3: found NaN in local forward loss calculation"), SIGNATURE_NUMERIC},
    {TRACE("ValueError: loss is nan"), SIGNATURE_NUMERIC},
    {"step 8 loss: nan\nnvidia-smi: GPU is lost\n", SIGNATURE_CHIP_BROKEN},
    /* The loss has recovered, or the word is something else. */
    {"step 7 loss: nan\nstep 8 loss: 2.3\n", SIGNATURE_NONE},
    {"loss: 2.31, grad_norm: nan\n", SIGNATURE_NONE},
    {"loss_scale: inf, loss scale: inf\n", SIGNATURE_NONE},
    {"check_for_nan_in_loss_and_grad ........ True\n", SIGNATURE_NONE},
    {"lossless information, nan_policy: omit\n", SIGNATURE_NONE},
    {"loss function: cross entropy (info)\n", SIGNATURE_NONE},
};

static void numbers(void **state)
{
    (void)state;
    CHECK_ROWS(numbers_rows);
    assert_int_equal(signature_numeric_step(STR("step 57: loss is not finite")), 57);
    assert_int_equal(signature_numeric_step(STR(" iteration   8/ 100 | lm loss: NaN")), 8);
    assert_int_equal(signature_numeric_step(STR("{'loss': nan}")), INT64_MAX);
}

/* The domain of each kind; symptoms have none. */
static void domains(void **state)
{
    (void)state;
    for (uint32_t kind = 1; kind < SIGNATURE_KINDS; kind++)
        if (signature_class_of((enum signature_kind)kind) != SIGNATURE_IS_ROOT)
            assert_int_equal(signature_domain((enum signature_kind)kind), DOMAIN_UNKNOWN);
    assert_int_equal(signature_domain(SIGNATURE_CHIP_BROKEN), DOMAIN_HARDWARE);
    assert_int_equal(signature_domain(SIGNATURE_CHIP_MISSING), DOMAIN_HARDWARE);
    assert_int_equal(signature_domain(SIGNATURE_DRIVER), DOMAIN_SOFTWARE);
    assert_int_equal(signature_domain(SIGNATURE_STORAGE), DOMAIN_SOFTWARE);
    assert_int_equal(signature_domain(SIGNATURE_NAME), DOMAIN_NETWORK);
    assert_int_equal(signature_domain(SIGNATURE_SERVICE), DOMAIN_NETWORK);
    assert_int_equal(signature_domain(SIGNATURE_SHARED_MEMORY), DOMAIN_USER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nccl),     cmocka_unit_test(survived),  cmocka_unit_test(host_memory),
        cmocka_unit_test(programs), cmocka_unit_test(launchers), cmocka_unit_test(surroundings),
        cmocka_unit_test(chips),    cmocka_unit_test(domains),   cmocka_unit_test(numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

# The files of the cuda back end that need nothing but CUDA's runtime: also built for a CPU, by tests/trainer/backend/cuda_emulator.
set(DDLRUN_CUDA_SOURCES backend.cc batch_norm.cc input.cc loss.cc pooling.cc stem.cc update.cc bottleneck/bottleneck.cc bottleneck/bottleneck_autotune.cc bottleneck/bottleneck_passes.cc bottleneck/stage.cc
    norms/norm_autotune.cc runtime/graph.cc runtime/layout.cc runtime/runtime.cc runtime/timing.cc stem/stem_autotune.cc)
set(DDLRUN_CUDA_KERNELS bottleneck/conv1_backward.cu bottleneck/conv1_backward_with_filter.cu bottleneck/conv1x1_forward.cu bottleneck/conv3_backward.cu bottleneck/conv3_data_gradient.cu loss_kernels.cu norms/batch_norm_backward_kernels.cu norms/batch_norm_kernels.cu
    norms/dual_batch_norm_kernels.cu pooling_kernels.cu runtime/copy_kernels.cu runtime/difference_kernels.cu
    stem/stem_backward_passes.cu stem/stem_forward_passes.cu stem/stem_kernels.cu update_kernels.cu)
list(TRANSFORM DDLRUN_CUDA_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)
list(TRANSFORM DDLRUN_CUDA_KERNELS PREPEND ${CMAKE_CURRENT_LIST_DIR}/)

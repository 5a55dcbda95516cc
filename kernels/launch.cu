// The kernel that does nothing: what it takes is the launch.
//
// Shape: any grid and block; the cases use one thread. FLOP: 0; bytes: 0.
// Block: one thread, since more would time the block scheduler. Architectures: all.

extern "C" __global__ void launch_empty() {}

// Fixed-width names. Kernels include no toolkit or std headers: they must also build with NVRTC from its wheel alone.
#pragma once

typedef unsigned int u32;
typedef unsigned long long u64;

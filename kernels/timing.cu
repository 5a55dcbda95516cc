// What the measuring itself runs on the device: spin kernels and clock stamps. No case times these.
// Architectures: all (sm_70 and newer, for nanosleep). No headers: builds with nvcc and with NVRTC.

__device__ __forceinline__ unsigned long long global_timer_ns() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// Holds the stream until the host raises `flag` (mapped host memory) or `timeout_ns` have passed on the
// device, so that what is queued behind it starts back to back. `status` tells which: 1 released, 2 timed out.
// The timeout is on the device, since a host blocked in a full queue could never raise the flag.
extern "C" __global__ void spin_until(const volatile unsigned int* flag, unsigned long long timeout_ns,
                                      unsigned int* status) {
    const unsigned long long begin = global_timer_ns();
    while (*flag == 0u) {
        if (global_timer_ns() - begin > timeout_ns) {
            *status = 2u;
            return;
        }
        __nanosleep(200);
    }
    *status = 1u;
}

// Spins for a known time: events around it must read at least as much, else they time another stream.
extern "C" __global__ void spin_for(unsigned long long duration_ns) {
    const unsigned long long begin = global_timer_ns();
    while (global_timer_ns() - begin < duration_ns) {
    }
}

// Notes clock64 and globaltimer for each SM: clock64 counts one SM's cycles, so that only differences on
// one SM mean anything. Many more blocks than SMs reach every SM; one 16-byte store keeps the pair together.
extern "C" __global__ void stamp_clocks(ulonglong2* slots, unsigned int slot_count) {
    if (threadIdx.x != 0) {
        return;
    }
    unsigned int sm;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    if (sm < slot_count) {
        slots[sm] = make_ulonglong2(static_cast<unsigned long long>(clock64()), global_timer_ns());
    }
}

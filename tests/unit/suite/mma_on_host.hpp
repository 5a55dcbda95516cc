// kernels/mma.cuh on the CPU: fragments as that file lays them out, products in FP64.
#pragma once

#include "elements.cuh"

enum class Operand { FP16, BF16, TF32, E4M3, INT8 };

inline void load_matrices(u32 (&to)[4], u32 shared_row) {
    struct Four {
        u32 words[4];
    };
    const Four found = exchanged(shared_row, [](const u32* rows, unsigned self) {
        Four four;
        for (unsigned matrix = 0; matrix < 4; ++matrix) {
            std::memcpy(&four.words[matrix], shared_begin + rows[matrix * 8 + self / 4] + self % 4 * 4, 4);
        }
        return four;
    });
    std::memcpy(to, found.words, sizeof to);
}

template <typename Element>
double dot(u32 a, u32 b) {
    Element left[4 / sizeof(Element)], right[4 / sizeof(Element)];
    std::memcpy(left, &a, 4);
    std::memcpy(right, &b, 4);
    double sum = 0;
    for (unsigned i = 0; i < 4 / sizeof(Element); ++i) {
        sum += number(left[i]) * number(right[i]);
    }
    return sum;
}

template <Operand OPERAND>
double dot(u32 a, u32 b) {
    switch (OPERAND) {
        case Operand::FP16:
            return dot<fp16>(a, b);
        case Operand::BF16:
            return dot<bf16>(a, b);
        case Operand::TF32:
            return dot<tf32>(a, b);
        case Operand::E4M3:
            return dot<e4m3>(a, b);
        case Operand::INT8:
            return dot<int8>(a, b);
    }
}

template <Operand OPERAND, typename Accumulator>
void multiply_16x8(Accumulator (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
    struct Fragments {
        u32 a[4], b[2];
    };
    struct Sums {
        double values[4];
    };
    Fragments own;
    std::memcpy(own.a, a, sizeof a);
    std::memcpy(own.b, b, sizeof b);
    const Sums sums = exchanged(own, [](const Fragments* lanes, unsigned self) {
        Sums found = {};
        for (unsigned i = 0; i < 4; ++i) {
            const unsigned row = self / 4, half = i / 2, column = self % 4 * 2 + i % 2;
            for (unsigned t = 0; t < 4; ++t) {
                for (unsigned deeper = 0; deeper < 2; ++deeper) {
                    found.values[i] +=
                        dot<OPERAND>(lanes[row * 4 + t].a[half + 2 * deeper], lanes[column * 4 + t].b[deeper]);
                }
            }
        }
        return found;
    });
    for (unsigned i = 0; i < 4; ++i) {
        c[i] += static_cast<Accumulator>(sums.values[i]);
    }
}

template <Operand OPERAND>
u32 packed(float first, float second) {
    const float values[2] = {first, second};
    u32 pair = 0;
    for (unsigned i = 0; i < 2; ++i) {
        if (OPERAND == Operand::FP16) {
            unsigned short bits;
            const _Float16 rounded = static_cast<_Float16>(values[i]);
            std::memcpy(&bits, &rounded, 2);
            pair |= static_cast<u32>(bits) << 16 * i;
        } else {
            const u32 bits = __float_as_uint(values[i]);
            pair |= (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16 * i;
        }
    }
    return pair;
}

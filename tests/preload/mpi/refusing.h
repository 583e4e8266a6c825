/* What refusing.c refuses; the program maps it where it wants such memory. */
#define REFUSED_BEGIN UINT64_C(0x200000000000)
#define REFUSED_BYTES (UINT64_C(64) << 20)

/* data/data_priv.h - inside lib/data. */
#ifndef DATA_DATA_PRIV_H
#define DATA_DATA_PRIV_H

#include "data/data.h"

/* Fills fault (NULL: nothing), gives -1. */
int fault_set(struct fault *fault, int code, const char *rule, const char *fmt, ...) PRINTF(4, 5);
/* A whole small file; what is no readable regular file is CODE_DATA with the words of file_read. */
int data_slurp(const char *path, size_t max, struct str *ret, struct fault *fault);
/* A regular file open for pread, and its size. Gives the descriptor or -1. */
int data_open(const char *path, uint64_t *ret_size, struct fault *fault);
/* Exactly n bytes at offset; fewer are file-truncated. */
int data_pread(int fd, const char *path, void *to, size_t n, uint64_t offset, struct fault *fault);

#define PICTURE_FILE_MAX ((size_t)256 << 20)

/* ---- zip archives: zip.c; stored or deflated members, zip64 ---- */

struct zip_member {
    char name[64];
    int method; /* 0 stored, 8 deflated */
    uint32_t crc;
    uint64_t packed, size, at; /* bytes in the file, bytes when unpacked, offset of the data */
};
struct zip {
    int fd;
    char *path;
    struct {
        struct zip_member *v;
        size_t n, cap;
    } members;
};
int zip_open(const char *path, struct zip *ret, struct fault *fault);
void zip_close(struct zip *z);
const struct zip_member *zip_find(const struct zip *z, const char *name);
/* The unpacked bytes one after the other; at the end their number and CRC are held against the member's. */
struct zip_stream;
struct zip_stream *zip_stream_open(const struct zip *z, const struct zip_member *m);
int zip_stream_read(struct zip_stream *s, void *to, size_t n, struct fault *fault); /* all n */
int zip_stream_end(struct zip_stream *s, struct fault *fault);                      /* nothing must be left */
void zip_stream_close(struct zip_stream *s);

struct zip_out {
    struct file_out file;
    bool deflate;
    struct {
        struct zip_member *v;
        size_t n, cap;
    } members; /* at: of the local header */
};
int zip_out_open(struct zip_out *z, const char *path, bool deflate, struct err *err);
/* One member from pieces, in order. */
struct zip_piece {
    const void *p;
    uint64_t n;
};
int zip_out_add(struct zip_out *z, const char *name, const struct zip_piece *pieces, size_t n,
                struct err *err);
int zip_out_commit(struct zip_out *z, struct err *err);
void zip_out_abort(struct zip_out *z);

/* ---- folders: folder.c, tum.c, colmap.c ---- */

struct frame_entry {
    char *stem;          /* for messages: "frame-000017" */
    char *depth, *color; /* paths; color NULL: none */
    double pose[16];
    uint64_t index;
};
struct folder {
    char *path;
    struct recon_camera camera; /* width and height 0 until the first frame */
    struct {
        struct frame_entry *v;
        size_t n, cap;
    } frames;
    uint64_t skipped, seen, taken;
    double depth_scale;
    bool colored;
};
int folder_scan(const char *path, const struct frames_options *o, struct folder *ret, struct fault *fault);
void folder_release(struct folder *f);
/* What the layouts call, frame by frame in order. wants: whether the next one is asked for (every, limit). take: a frame
 * whose pose, camera-to-world as its file says, is of use (why NULL) or not; takes over the entry. */
bool folder_wants(struct folder *f, const struct frames_options *o);
int folder_take(struct folder *f, struct frame_entry *e, const struct fault *why, const struct frames_options *o, struct fault *fault);
/* The camera of the option or of camera-intrinsics.txt; 1: neither is there. */
int folder_camera(struct folder *f, const struct frames_options *o, struct fault *fault);
bool folder_holds(const char *path, const char *name); /* something of that name below it */
/* A name out of a file: relative, nothing above the folder. */
bool folder_name_fine(const char *name);

int tum_scan(struct folder *f, const struct frames_options *o, struct fault *fault);
int colmap_scan(struct folder *f, const struct frames_options *o, struct fault *fault);
bool colmap_there(const char *path);

/* Rotation of a quaternion (any length above 0) and a translation as a pose; false: not finite or of no length. */
bool pose_from(const double wxyz[4], const double t[3], double ret[16]);
/* From the axes of the options to recon's, scaled and transformed. pose.c */
void pose_convert(double pose[16], const struct frames_options *o);

/* One frame: depth (width * height) in metres and, when rgb is not NULL, its colours. decode.c */
int frame_decode(const struct folder *f, const struct frame_entry *e, const struct frames_options *o,
                 float *depth, uint8_t *rgb, struct fault *fault);
/* Box of what a sample of frames shows; NaN when nothing. Warns of outliers. bounds.c */
int folder_bounds(const struct folder *f, const struct frames_options *o, double ret[6], struct fault *fault);

#endif

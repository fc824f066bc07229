/* cuda/copier.h - helper threads that copy a frame together with the caller: one core does not keep up with a decoder on
 * many. C++17. */
#ifndef KERNELS_CUDA_COPIER_H
#define KERNELS_CUDA_COPIER_H

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>

class copier {
    enum { MOST = 3 };
    static constexpr size_t PIECE = 128 << 10;
    struct part {
        char *to;
        const char *from;
        size_t bytes, pieces;
    };

    std::thread helper[MOST];
    std::mutex lock;
    std::condition_variable wake;
    part parts[2] = {};
    std::atomic<size_t> next{ 0 }, done{ 0 };
    std::atomic<int> active{ 0 }; /* helpers inside share(); raised under the lock */
    unsigned round = 0;
    bool over = false;
    int n = 0;

    static part part_of(void *to, const void *from, size_t bytes)
    {
        part p = { (char *)to, (const char *)from, bytes, (bytes + PIECE - 1) / PIECE };

        return p;
    }

    /* Copies pieces until none is left. */
    void share()
    {
        size_t all = parts[0].pieces + parts[1].pieces, i;

        while ((i = next.fetch_add(1)) < all) {
            const part &p = parts[i >= parts[0].pieces];
            size_t at = (i >= parts[0].pieces ? i - parts[0].pieces : i) * PIECE;

            memcpy(p.to + at, p.from + at, p.bytes - at < PIECE ? p.bytes - at : PIECE);
            done.fetch_add(1);
        }
    }

    void serve()
    {
        std::unique_lock<std::mutex> held(lock);
        unsigned seen = 0;

        for (;;) {
            wake.wait(held, [&] { return over || round != seen; });
            if (over)
                return;
            seen = round;
            active++;
            held.unlock();
            share();
            active--;
            held.lock();
        }
    }

    void rest() /* no helper is inside share() and none enters it meanwhile: the lock is held */
    {
        while (active)
            std::this_thread::yield();
    }

public:
    /* helpers: how many threads besides the caller's, at most MOST; fewer when no more can be started. */
    explicit copier(int helpers)
    {
        try {
            while (n < helpers && n < MOST) {
                helper[n] = std::thread([this] { serve(); });
                n++;
            }
        } catch (const std::system_error &) { /* these do */
        }
    }
    copier(const copier &) = delete;
    copier &operator=(const copier &) = delete;
    ~copier()
    {
        {
            std::lock_guard<std::mutex> held(lock);
            over = true;
        }
        wake.notify_all();
        while (n)
            helper[--n].join();
    }

    /* Both copies are complete after; the second may be of 0 bytes. */
    void copy(void *to, const void *from, size_t bytes, void *to2, const void *from2, size_t bytes2)
    {
        {
            std::lock_guard<std::mutex> held(lock);
            rest();
            parts[0] = part_of(to, from, bytes);
            parts[1] = part_of(to2, from2, bytes2);
            done = 0;
            next = 0;
            round++;
        }
        wake.notify_all();
        share();
        while (done < parts[0].pieces + parts[1].pieces)
            std::this_thread::yield();
    }
};

#endif

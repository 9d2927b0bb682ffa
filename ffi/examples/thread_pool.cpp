// A thread pool whose jobs call a service that takes no more than so many requests in any window. The workers share one
// limiter as it is: no lock around it, and whoever is refused sleeps as long as the limiter says.
//
//   c++ -std=c++14 -pthread thread_pool.cpp $(pkg-config --cflags --libs tollgate) -o thread_pool && ./thread_pool
//
// At the end it looks at the times of all requests, and no window held more than the limit.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include <tollgate/tollgate.hpp>

namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr unsigned workers = 4;
constexpr std::size_t jobs = 100;
constexpr std::size_t limit = 25;
constexpr milliseconds window{100};

// Runs jobs on threads of its own; its end waits for all of them.
class Pool {
public:
    explicit Pool(unsigned threads) {
        for (unsigned i = 0; i < threads; i++) {
            threads_.emplace_back([this] { work(); });
        }
    }

    ~Pool() {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            closed_ = true;
        }
        changed_.notify_all();
        for (auto &thread : threads_) {
            thread.join();
        }
    }

    Pool(const Pool &) = delete;
    Pool &operator=(const Pool &) = delete;

    void submit(std::function<void()> job) {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            queue_.push_back(std::move(job));
        }
        changed_.notify_one();
    }

private:
    void work() {
        for (;;) {
            std::unique_lock<std::mutex> lock(mutex_);
            changed_.wait(lock, [this] { return closed_ || !queue_.empty(); });
            if (queue_.empty()) {
                return;
            }
            auto job = std::move(queue_.front());
            queue_.pop_front();
            lock.unlock();
            job();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> queue_;
    std::vector<std::thread> threads_;
    bool closed_ = false;
};

} // namespace

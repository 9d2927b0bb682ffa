-- The exact log in one string: a header, a block, and the times of the last C units, unit k at slot k % C.
-- C: capacity, the largest limit so far; mark: when the key dies; n: units ever admitted; last: the newest record; clock: the
-- newest time judged. Records never decrease, so the unit L - m + 1 from the end decides whether m more fit.
--
-- The block is a queue of BLOCK records: first the next to be overwritten, then the newest n % BLOCK, which are not in their
-- slots yet. One unit takes a record from its front and puts one at its end, so header and block are all that most calls
-- read and write; when the newest fill it, they go to their slots and it is made anew. A ring of BLOCK records or less is a
-- block alone. Before there have been BLOCK units, it holds only them, and nothing follows.
--
-- The slots grow by doubling, made anew at their exact size: the server's own growth would leave up to half of it unused.
-- They reach a block further than what is in them, so that the next to be overwritten can be read, as zeros.
local HEADER, BLOCK, SLOTS, TAG, FORMAT = 48, 16, 176, 'tg.ring2', '>c8I8I8I8I8I8'
local CHUNK = 64                              -- records that are about as cheap to read as one

-- A stamp n times. string.rep goes byte by byte.
local function times(stamp, n)
  local all = ''
  while n > 1 do
    if n % 2 == 1 then all = all .. stamp end
    stamp, n = stamp .. stamp, math.floor(n / 2)
  end
  return all .. stamp
end

local function open(key, L, W)
  local C, mark, n, last, clock, block = L, 0, 0, 0, 0, ''
  local state = key == KEYS[1] and first or call('GETRANGE', key, '0', '175')
  if #state >= HEADER + 8 and string.sub(state, 1, 8) == TAG then
    local _
    _, C, mark, n, last, clock = struct.unpack(FORMAT, state)
    block = string.sub(state, HEADER + 1)
    eff = math.max(eff, clock)
  end

  -- The newest records that only the block holds.
  local function apart() return C <= BLOCK and math.min(n, C) or n % BLOCK end
  local function get(slot, count)
    local here = math.min(count, C - slot)
    local part = call('GETRANGE', key, SLOTS + slot * 8, SLOTS + (slot + here) * 8 - 1)
    return here < count and part .. get(0, count - here) or part
  end
  local function put(slot, records)
    local here = math.min(#records, (C - slot) * 8)
    call('SETRANGE', key, SLOTS + slot * 8, here < #records and string.sub(records, 1, here) or records)
    if here < #records then put(0, string.sub(records, here + 1)) end
  end

  -- Records by age, C - 1 the newest: those from `a` on, before `b`; read before, by age.
  local chunk, start = '', 0
  local function records(a, b)
    local front, from = #block / 8 - apart(), C - apart()
    if b <= front then return string.sub(block, a * 8 + 1, b * 8) end
    local placed = a < from and get((n + a) % C, math.min(b, from) - a) or ''
    if b <= from then return placed end
    return placed .. string.sub(block, (front + math.max(a - from, 0)) * 8 + 1, (front + b - from) * 8)
  end
  local function at(age)
    if age == C - 1 then return last end
    if age < start or (age - start) * 8 >= #chunk then chunk, start = records(age, age + 1), age end
    return (struct.unpack('>I8', chunk, (age - start) * 8 + 1))
  end

  local self = {}
  function self.wait(m)
    local age = C - L + m - 1
    if age < 0 or age < C - n then return 0 end -- held no longer: it had left when C sufficed; or never admitted
    return math.max(0, at(age) + W - eff)
  end
  -- The first record still inside the window is looked for where an even flow would have it, twice, then by halves.
  function self.free()
    local lo, hi = C - math.min(L, C, n), C
    local gone, early, late = eff - W, lo < hi and at(lo) or last, last
    if late <= gone then return L end
    for try = 1, 64 do
      if lo == hi or early > gone then break end
      local guess = try < 3 and (gone - early) / (late - early) or 0.5
      local from = math.max(lo, lo + math.floor((hi - lo) * guess) - CHUNK / 2)
      local to = math.min(from + CHUNK, hi)
      chunk, start = records(from, to), from
      if at(from) > gone then
        hi, late = from, at(from)
      elseif at(to - 1) <= gone then
        lo, early = to, at(to - 1)
      else
        lo, hi = from + 1, to - 1
        while lo < hi do
          local mid = math.floor((lo + hi) / 2)
          if at(mid) > gone then hi = mid else lo = mid + 1 end
        end
      end
    end
    return L - (C - lo)
  end

  -- Slots that the string has while it holds so many units and has never been full.
  local function room(units)
    if C <= BLOCK or units < BLOCK then return 0 end
    local slots = 2 * BLOCK
    while slots < units - units % BLOCK + BLOCK do slots = slots * 2 end
    return math.min(slots, C)
  end
  -- The newest records, up to unit n: whole blocks to their slots, the rest to the end of a new block.
  local function place(newest)
    local rest = n % BLOCK
    local size = #newest - rest * 8
    if size > 0 then put((n - rest - size / 8) % C, string.sub(newest, 1, size)) end
    block = get(n % C, BLOCK - rest) .. string.sub(newest, size + 1)
  end
  -- Makes the string anew, with slots for g more: the records oldest first, from slot 0.
  local function grow(g)
    local held = math.min(n, C)
    local all = held > 0 and records(C - held, C) or ''
    n, C = held, math.max(C, L)               -- never smaller: records above a lowered limit still count if it is raised
    local slots = room(math.min(n + g, C))
    -- First without letting go of anything: the server may be short of memory, or allow no string so long.
    if slots > 0 then call('SETRANGE', key, SLOTS + slots * 8 - 1, '\0') end
    call('DEL', key)
    if slots == 0 then block = all return end
    call('SETRANGE', key, SLOTS + slots * 8 - 1, '\0')
    place(all)
  end
  function self.take(g)
    local renew = L > C or n < C and room(math.min(n + g, C)) > room(n)
    if renew then grow(g) end                 -- the new key has no expiry yet
    last = math.max(eff + hold, last)
    local newest = times(struct.pack('>I8', last), g)
    if C <= BLOCK or n % BLOCK + g < BLOCK then
      block = block .. newest
      block = string.sub(block, math.max(0, #block - math.min(C, BLOCK) * 8) + 1)
      n = n + g
    else
      newest = string.sub(block, #block - n % BLOCK * 8 + 1) .. newest
      n = n + g
      place(newest)
    end
    chunk = ''
    renew = renew or last + W > mark
    if renew then mark = last + 2 * W end
    call('SETRANGE', key, '0', struct.pack(FORMAT, TAG, C, mark, n, last, eff) .. block)
    if renew then expire(key, mark) end
  end
  return self
end

;; Tries to call a writer, and fails if it was called.
(func $run (param $target i32) (result i32)
  (local $session i32)
  (call $primary (local.get $target) (i32.const 512))
  (local.set $session (i32.load (i32.const 516)))
  (call $request (local.get $session) 'tools/call' (i32.const 1) '{"name":"delete_item","arguments":{"query":"all"}}'
    (i32.const 0) (i32.const 0) (i32.const 512))
  (if (i32.eqz (i32.load8_u (i32.const 512)))
    (then (call $fail 'hostile.holds' 'delete_item' 'acme.broken' (i32.const -1))))
  (call $drop-session (local.get $session))
  (call $finish))

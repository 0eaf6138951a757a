package stack

// PID is the id of the process, which must have been started.
func (r *Router) PID() int { return r.process.Process.Pid }
